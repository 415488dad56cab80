"""What counts as a high signal: the paper's percentile rule, and the top-M rule."""
