//! brokerd
