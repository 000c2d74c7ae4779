//! Large mappings, and how much memory there is.

use std::io;
use std::ptr::NonNull;

const HUGE: usize = 2 << 20;

/// Anonymous memory, zero at birth, aligned to 2 MiB if it is that large, on huge pages where they can be had. Unmapped on drop.
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
    base: NonNull<u8>,
    base_len: usize,
}

// SAFETY: the mapping belongs to this value alone; what its users do through `as_ptr` is theirs to prove.
unsafe impl Send for Mapping {}
// SAFETY: as above; this type itself never touches the bytes.
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
        // SAFETY: exactly what `map` mapped.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.base_len) };
    }
}

/// Maps at least `len` bytes.
pub fn map(len: usize) -> io::Result<Mapping> {
    let len = len.next_multiple_of(4096).max(4096);
    let base_len = if len >= HUGE { len.next_multiple_of(HUGE) + HUGE } else { len };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // Miri knows no advice about memory, which changes nothing but speed.
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | if cfg!(miri) { 0 } else { libc::MAP_NORESERVE };
    // SAFETY: a new anonymous mapping at an address of the kernel's choice.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), base_len, protection, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let base = NonNull::new(base.cast::<u8>()).expect("mmap does not return null");
    let start = if len >= HUGE {
        let skip = base.as_ptr().align_offset(HUGE);
        // SAFETY: `skip` is below HUGE, and HUGE spare bytes were mapped.
        let start = unsafe { base.add(skip) };
        // SAFETY: the range lies in the mapping. Advice only: without huge pages it all works, slower.
        #[cfg(not(miri))]
        unsafe {
            libc::madvise(start.as_ptr().cast(), len.next_multiple_of(HUGE), libc::MADV_HUGEPAGE)
        };
        start
    } else {
        base
    };
    Ok(Mapping { start, len, base, base_len })
}

fn number_in(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Memory this process may use: the machine's or its cgroup's, whichever is smaller.
pub fn limit_bytes() -> u64 {
    let machine =
        std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| kilobytes(&text, "MemTotal:")).unwrap_or(1 << 30);
    cgroup_limits().into_iter().fold(machine, u64::min)
}

/// Limits of every cgroup above this process, version 2 and 1.
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

fn kilobytes(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(field))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

/// Memory of this process that is resident now.
pub fn rss_bytes() -> u64 {
    std::fs::read_to_string("/proc/self/status").ok().and_then(|text| kilobytes(&text, "VmRSS:")).unwrap_or(0)
}

/// The most that the process has ever had in use.
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
            // SAFETY: inside the mapping, and nobody else knows it.
            assert_eq!(unsafe { mapping.as_ptr().add(mapping.len() - 1).read() }, 0);
        }
    }

    #[test]
    fn there_is_memory() {
        assert!(super::limit_bytes() > 16 << 20);
        assert!(super::rss_bytes() > 100 << 10);
    }
}
