//! Limits and defaults of the process: how many file descriptors it may have, and who may read the files it makes.

use std::io;

/// Raises the soft limit on open file descriptors to the hard one. Returns the limit in force afterwards; an error leaves it as it was.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one rlimit into a live value.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur < limit.rlim_max {
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        // SAFETY: the kernel reads one rlimit from a live value.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) } == 0 {
            return Ok(raised.rlim_cur);
        }
    }
    Ok(limit.rlim_cur)
}

/// Returns how many file descriptors the process has open. Needs /proc; without it returns 0.
pub fn descriptors_open() -> u64 {
    // The listing itself holds one descriptor while it is read.
    std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count().saturating_sub(1) as u64)
}

/// Sets the umask so that files the process makes from now on are its user's alone (0600, folders 0700), unless the code that makes one
/// gives it wider permissions afterwards.
pub fn make_files_private() {
    // SAFETY: umask has no preconditions and cannot fail.
    unsafe { libc::umask(0o077) };
}
