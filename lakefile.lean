import Lake
open Lake DSL

package leanguard

@[default_target]
lean_lib LeanGuard

@[default_target]
lean_lib Policies where
  srcDir := "policies"
  roots := #[`Policies, `Airline, `AirlineRepair, `Retail, `RetailRepair, `Shared, `Telecom, `TelecomRepair]

@[default_target]
lean_exe repl where
  root := `Repl
  supportInterpreter := true
