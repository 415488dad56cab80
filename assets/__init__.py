"""The asset graph, one module per stage, in pipeline order. Logic lives in ``saber_dagster``."""
