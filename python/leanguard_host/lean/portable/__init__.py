"""The portable toolchain: Lean compiled to WebAssembly, run by Node; everything comes from package registries."""
