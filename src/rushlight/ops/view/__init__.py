"""Views: reshape, permute, select, split, squeeze, expand, as_strided."""
