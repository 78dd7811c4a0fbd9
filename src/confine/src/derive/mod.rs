//! From profile, tool, grant, call and host to a plan.
