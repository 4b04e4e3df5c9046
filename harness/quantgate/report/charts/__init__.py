"""Charts as inline SVG, rendered in Python: no script, no library, nothing to load. One kind of chart per file."""
