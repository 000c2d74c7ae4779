//! The means that every measurement needs: programs, a work folder, a place for the results, and the effort.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::cases::Effort;
use crate::machine::Machine;
use crate::probe::ProbeFile;
use crate::server::{Place, Side, memory_mib_default};
use crate::svg::Chart;
use crate::table::{Table, grouped};

pub struct Setup {
    pub place: Place,
    pub sides: Vec<Side>,
    pub effort: Effort,
    pub quick: bool,
    pub out: Option<PathBuf>,
}

impl Setup {
    pub fn probe_file(&self, bytes: u64) -> io::Result<ProbeFile> {
        ProbeFile::create(self.place.work.path(), bytes)
    }

    /// Writes a page and what belongs to it, or prints the page when there is no folder for results.
    pub fn publish(
        &self,
        name: &str,
        page: &str,
        tables: &[(&str, &Table)],
        charts: &[(&str, &Chart)],
    ) -> io::Result<()> {
        let Some(out) = &self.out else {
            println!("{page}");
            return Ok(());
        };
        fs::create_dir_all(out)?;
        fs::write(out.join(format!("{name}.md")), page)?;
        for (name, table) in tables {
            fs::write(out.join(format!("{name}.csv")), table.csv())?;
        }
        for (name, chart) in charts {
            fs::write(out.join(format!("{name}.svg")), chart.svg())?;
        }
        eprintln!("written: {}", out.join(format!("{name}.md")).display());
        Ok(())
    }

    /// The paragraph about the origin of the figures.
    pub fn provenance(&self, command: &str) -> io::Result<String> {
        let versions = self.place.versions().join(", ");
        let memory_mib = memory_mib_default();
        Ok(self.machine()?
            + &format!(
                "- Programs: {versions}. Beluga runs with `--memory {memory_mib}mb` where nothing else is said.\n"
            )
            + &format!(
                "- To reproduce: `apt-get install redis-server`, then `cargo build --release -p server` and `{command}`.\n\n"
            ))
    }

    /// The machine and its disk.
    pub fn machine(&self) -> io::Result<String> {
        let machine = Machine::read();
        let probe = self.probe_file(256 << 20)?;
        let time = if self.quick { Duration::from_millis(200) } else { Duration::from_secs(2) };
        let (durable, durable_p99) = probe.durable_write(time)?;
        let sequential = probe.sequential_write(time)?;
        let (alone, deep) = (probe.random_read(1, time)?, probe.random_read(128, time)?);
        let mut out = String::new();
        if self.quick {
            out += "**A quick run: short turns and little data. Good for seeing that everything works, not for figures.**\n\n";
        }
        out += &format!(
            "- Machine: {}, {} cores{}, {} GiB of memory, {}. Client and servers share these cores and talk over loopback.\n",
            machine.cpu,
            machine.cores,
            if machine.virtual_machine { " of a virtual machine" } else { "" },
            grouped(machine.memory_bytes as f64 / f64::from(1 << 30), 1),
            machine.kernel,
        );
        out += &format!(
            "- Disk, asked directly with O_DIRECT: a durable 4 KiB write (O_DSYNC) takes {:.0} us (p99 {:.0} us); sequential writes {:.0} MB/s; \
             random 4 KiB reads {}/s alone, {}/s with 128 in flight.\n",
            durable.as_secs_f64() * 1e6,
            durable_p99.as_secs_f64() * 1e6,
            sequential / 1e6,
            grouped(alone, 0),
            grouped(deep, 0),
        );
        Ok(out)
    }
}
