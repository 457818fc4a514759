"""Tables of which several rows are taken at once."""
