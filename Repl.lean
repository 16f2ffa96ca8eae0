import Lean
import Policies

/-!
# The warm process

A loop that speaks the JSON protocol of the Lean REPL: objects on standard input separated by a blank line, one answer each. `{"cmd": ...}`
elaborates Lean commands, as a person at a REPL would; `{"guard": ...}` is the hot path and elaborates nothing, also where it proves. A request that can't be
served is answered with `{"message": ...}`, and the loop goes on.
-/

namespace LeanGuard.Repl

open Lean Elab

structure Server where
  /-- The states after each command, by the number that its answer calls `env`. -/
  environments : Array Command.State := #[]
  journals : Wire.Journals := ∅
  /-- Made by the first request that needs it. -/
  prover : Option Prove.Prover := none

abbrev ServerM := StateRefT Server IO

/-- With `LEANGUARD_FRAMED` in the environment, answers are marked lines: a launcher that shares standard output with others strips them. -/
def send (framed : Bool) (answer : Json) : IO Unit := do
  let stdout ← IO.getStdout
  stdout.putStr (if framed then "\x1e" ++ answer.compress ++ "\n" else answer.compress ++ "\n\n")
  stdout.flush

/-- The environment in which commands start: all of LeanGuard, the policies and Lean. -/
def freshState : IO Command.State := do
  if (← searchPathRef.get).isEmpty then initSearchPath (← findSysroot)
  let env ← importModules #[{ module := `Lean }, { module := `Policies }] {} (trustLevel := 1024) (loadExts := true)
  let options := KVMap.empty |>.setBool `Elab.async false
  return Command.mkState env {} options

def positionJson (p : Position) : Json := .mkObj [("line", p.line), ("column", p.column)]

def messageJson (m : Message) : IO Json := do
  let severity := match m.severity with
    | .information => "info"
    | .warning => "warning"
    | .error => "error"
  return .mkObj [
    ("severity", severity), ("pos", positionJson m.pos),
    ("endPos", m.endPos.elim .null positionJson), ("data", ← m.data.toString)]

/-- Elaborates commands after those of `env`, or in a fresh environment. -/
def runCommand (text : String) (env : Option Nat) : ServerM Json := do
  let state ← match env with
    | none => freshState
    | some i => match (← get).environments[i]? with
      | some state => pure state
      | none => throw (IO.userError s!"Unknown environment {i}.")
  let input := Parser.mkInputContext text "<input>"
  let before := { state with messages := {} }
  let after ← IO.processCommands input {} before
  let messages ← after.commandState.messages.toList.mapM fun m => messageJson m
  modify fun s => { s with environments := s.environments.push after.commandState }
  let mut fields := [("env", toJson ((← get).environments.size - 1))]
  unless messages.isEmpty do fields := fields ++ [("messages", .arr messages.toArray)]
  return .mkObj fields

/-- Answers a `guard` request, with the time that it took. -/
def runGuard (request : Json) : ServerM Json := do
  let started ← IO.monoNanosNow
  let answer ←
    if Wire.isProving request then
      let prover ← modifyGet fun s => (s.prover, { s with prover := none })
      let (prover, answer) ← Wire.serveProving (return (← freshState).env) domains prover request
      modify fun s => { s with prover := some prover }
      pure answer
    else
      let journals ← modifyGet fun s => (s.journals, { s with journals := ∅ })
      let (journals, answer) := Wire.answer policies journals request
      modify fun s => { s with journals }
      pure answer
  let finished ← IO.monoNanosNow
  return .mkObj [("guard", answer.setObjVal! "elapsed_us" (toJson ((finished - started) / 1000)))]

def dispatch (text : String) : ServerM Json := do
  let request ← IO.ofExcept ((Json.parse text).mapError fun e => IO.userError s!"Could not parse the request as JSON: {e}")
  if let .ok guard := request.getObjVal? "guard" then runGuard guard
  else match request.getObjValAs? String "cmd" with
    | .ok text => runCommand text (request.getObjValAs? Nat "env").toOption
    | .error _ => throw (IO.userError "Unknown request: expected an object with \"guard\" or \"cmd\".")

/-- The lines of the next request, up to a blank line; none at the end of input. -/
partial def readRequest (stdin : IO.FS.Stream) (lines : String := "") : IO (Option String) := do
  let line ← stdin.getLine
  if line.isEmpty then return if lines.isEmpty then none else some lines
  if line.trimAscii.isEmpty then
    if lines.isEmpty then readRequest stdin else return some lines
  else readRequest stdin (lines ++ line)

partial def serve (framed : Bool) : ServerM Unit := do
  let some text ← readRequest (← IO.getStdin) | return
  let answer ← try dispatch text catch e => pure (.mkObj [("message", toString e)])
  send framed answer
  serve framed

unsafe def start : IO Unit := do
  enableInitializersExecution
  let framed := (← IO.getEnv "LEANGUARD_FRAMED").isSome
  (serve framed).run' {}

@[implemented_by start]
opaque startSafely : IO Unit

end LeanGuard.Repl

def main : IO Unit := LeanGuard.Repl.startSafely
