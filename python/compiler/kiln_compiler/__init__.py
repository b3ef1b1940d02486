"""Kiln's compiler, for the package `kiln`, which finds it here."""
