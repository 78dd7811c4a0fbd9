//! Any bytes are an envelope or an error, and an envelope survives being written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::Envelope;

fuzz_target!(|body: &[u8]| {
    if let Ok(envelope) = Envelope::decode(body) {
        // An absent field is written as null, so that the longest of bodies may not fit a frame again.
        if let Ok(again) = envelope.encode() {
            assert_eq!(Envelope::decode(&again), Ok(envelope));
        }
    }
});
