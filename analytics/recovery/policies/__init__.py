"""Recovery policies, a family a module; each lists its `POLICIES`, found without being named."""
