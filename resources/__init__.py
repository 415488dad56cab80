"""What is injected into assets: engines, the call ledger and the Parquet store."""
