"""What counts as a high signal: the paper's percentile rule, the top-M rule, or fixed numbers."""
