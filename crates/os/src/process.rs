//! Limits and defaults of the process: how many file descriptors it may have, the permissions of the files that it makes, its end.

use std::io;

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};

/// Raises the soft limit of open file descriptors to the hard limit. Returns the limit that is in force afterwards; if the kernel refuses, that is the old one.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    let in_force = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    Ok(in_force.unwrap_or(u64::MAX))
}

/// Returns how many file descriptors the process has open. It needs /proc and returns 0 without it.
pub fn descriptors_open() -> u64 {
    // The listing itself holds one descriptor while it is read.
    std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count().saturating_sub(1) as u64)
}

/// Sets the umask so that files that the process makes from now on belong to its user alone (0600, folders 0700), unless the code that makes a file
/// widens its permissions afterwards.
pub fn make_files_private() {
    umask(Mode::from_raw_mode(0o077));
}

/// Ends the process at once, whatever its threads do. Unlike `std::process::exit` it runs no destructor of a loaded library: those of librados would meet its own running threads.
pub fn end_now(code: i32) -> ! {
    // SAFETY: OS-10: the call touches no memory of the process and does not return.
    unsafe { libc::_exit(code) }
}
