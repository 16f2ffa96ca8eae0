import LeanGuard.Spec.Read
import LeanGuard.Spec.Policy

/-! # What the policies share: events, consent, calls in flight -/

namespace LeanGuard.Shared

/-- An event of that kind. -/
def event (kind : Symbol) : Formula := .happened kind.text fun e => .ok (e.kind == kind)

def authentication : Formula := event sym!"authentication"
def observation : Formula := event sym!"observation"
def consent : Formula := event sym!"consent"
def reservation : Formula := event sym!"reservation"
def outcome : Formula := event sym!"outcome"

/-- A call of that tool ended well. -/
def succeeded (tool : Symbol) : Formula :=
  .happened s!"{tool} succeeded" fun e =>
    .ok (e.kind == sym!"outcome" && e.status == some sym!"succeeded" && e.call.any (·.tool == tool))

/-- A customer was authenticated in this conversation. -/
def authenticated : Formula := .within [.conversation] (.once .unbounded authentication)

/-- This resource was read in this conversation. -/
def observed : Formula := .within [.conversation, .resource] (.once .unbounded observation)

/-- A consent, and no reservation since. -/
def unspentConsent : Formula := .since .unbounded (.not reservation) consent

/-- The customer confirmed exactly this call, in this state of the backend, and it has not been sent since: not in this conversation, and
not anywhere else. -/
def confirmed : Formula :=
  .and (.within [.principal, .conversation, .resource, .revision, .proposal] unspentConsent)
    (.within [.proposal] unspentConsent)

/-- A call on this resource was sent and has not come back. -/
def inFlight : Formula := .within [.resource] (.since .unbounded (.not outcome) reservation)

/-- One call in flight for a resource. -/
def noOverlap : Rule where
  id := "host.no_overlap"
  kind := .forbid
  tools := .writing
  category := .temporalIncompatibility
  hint := "Another call on the same resource has not come back yet. Wait for its outcome before you call again."
  sentence := "At most one call may be in flight for a resource."
  condition := inFlight

end LeanGuard.Shared
