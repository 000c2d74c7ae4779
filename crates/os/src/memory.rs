//! Large mappings, and how much memory the process may use.

use std::io;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags};

const HUGE: usize = 2 << 20;

/// Zeroed anonymous memory. A mapping of 2 MiB or more is aligned to 2 MiB and uses huge pages where the kernel has them. Unmapped on drop.
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
    base: NonNull<u8>,
    base_len: usize,
}

// SAFETY: OS-4: the mapping belongs to this value alone. Its users must prove that their accesses through `as_ptr` are sound.
unsafe impl Send for Mapping {}
// SAFETY: OS-4: as above; this type itself never touches the bytes.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: OS-4: exactly the address and length that `map` has mapped.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.base_len) };
    }
}

/// Maps at least `len` bytes.
pub fn map(len: usize) -> io::Result<Mapping> {
    let len = len.next_multiple_of(4096).max(4096);
    let base_len = if len >= HUGE { len.next_multiple_of(HUGE) + HUGE } else { len };
    // Miri supports neither the flag nor advice about memory; both change nothing but speed.
    let flags = if cfg!(miri) { MapFlags::PRIVATE } else { MapFlags::PRIVATE | MapFlags::NORESERVE };
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: OS-4: a new anonymous mapping at an address of the kernel's choice.
    let base = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), base_len, protection, flags) }?;
    let base = NonNull::new(base.cast::<u8>()).expect("mmap does not return null");
    let start = if len >= HUGE {
        let skip = base.as_ptr().align_offset(HUGE);
        // SAFETY: OS-4: `skip` is below HUGE, and HUGE spare bytes were mapped.
        let start = unsafe { base.add(skip) };
        // SAFETY: OS-4: the range lies in the mapping. Without huge pages everything works, but slower.
        #[cfg(not(miri))]
        let _ =
            unsafe { rustix::mm::madvise(start.as_ptr().cast(), len.next_multiple_of(HUGE), Advice::LinuxHugepage) };
        start
    } else {
        base
    };
    Ok(Mapping { start, len, base, base_len })
}

fn number_in(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Returns how much memory this process may use: that of the machine or of its cgroup, whichever is smaller.
pub fn limit_bytes() -> u64 {
    let machine =
        std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| kilobytes(&text, "MemTotal:")).unwrap_or(1 << 30);
    cgroup_limits().into_iter().fold(machine, u64::min)
}

/// Returns the limits of every cgroup above this process, of versions 2 and 1.
fn cgroup_limits() -> Vec<u64> {
    let mut limits = Vec::new();
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|name| name == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        let mut path = path.trim_end_matches('/');
        loop {
            limits.extend(number_in(&format!("{root}{path}/{file}")));
            match path.rfind('/') {
                Some(at) => path = &path[..at],
                None => break,
            }
        }
    }
    limits
}

/// Returns the value of a field in a file of /proc, in bytes.
fn kilobytes(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(field))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

/// Returns the resident memory of this process; 0 without /proc.
pub fn rss_bytes() -> u64 {
    std::fs::read_to_string("/proc/self/status").ok().and_then(|text| kilobytes(&text, "VmRSS:")).unwrap_or(0)
}

/// Returns the greatest resident memory that the process has had; 0 without /proc.
pub fn peak_rss_bytes() -> u64 {
    std::fs::read_to_string("/proc/self/status").ok().and_then(|text| kilobytes(&text, "VmHWM:")).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn large_mappings_are_aligned_and_zero() {
        for len in [1, 4096, 3 << 20] {
            let mapping = super::map(len).unwrap();
            assert!(mapping.len() >= len);
            let alignment = if len >= super::HUGE { super::HUGE } else { 4096 };
            assert_eq!(mapping.as_ptr() as usize % alignment, 0);
            // SAFETY: OS-4: the byte lies in the mapping, and nothing else uses it.
            assert_eq!(unsafe { mapping.as_ptr().add(mapping.len() - 1).read() }, 0);
        }
    }

    #[test]
    fn the_limits_of_the_machine_are_read() {
        assert!(super::limit_bytes() > 16 << 20);
        assert!(super::rss_bytes() > 100 << 10);
    }
}
