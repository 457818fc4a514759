"""Products of matrices: mm, bmm, addmm and their kin, matmul, einsum."""
