"""Names kept for programs that ask for them: aten overloads, sparse methods."""
