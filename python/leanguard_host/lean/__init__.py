"""The Lean side: finding or installing a toolchain, building the package, and the warm process that decides."""
