"""The programs of a run, the kernel's figures of them, frames and signatures: for bench, compare, frozen-tab, one-surface and push."""
