import LeanGuard.LeanLTL.Length
import LeanGuard.LeanLTL.Trace
import LeanGuard.LeanLTL.TraceSet
import LeanGuard.LeanLTL.Notation
import LeanGuard.LeanLTL.Basic
import LeanGuard.LeanLTL.OfList

/-!
# Linear temporal logic on traces

Definitions and names follow LeanLTL (Vin, Miller, Fremont, ITP 2025), without Mathlib. `Trace` and `TraceSet` hold the
definitions, `Notation` the symbols, `Basic` the lemmas, and `OfList` the finite traces that are given by a list.
-/
