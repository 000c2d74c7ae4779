//! The servers under test, started and stopped here: the one place that knows their command lines.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::control::Control;
use crate::load::Shape;
use crate::machine::Machine;
use crate::{machine, process};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Side {
    Beluga,
    /// The peer of equal durability: on disk before the reply.
    RedisAlways,
    /// May lose a second of acknowledged writes; shown, not ranked.
    RedisEverysec,
}

impl Side {
    pub const ALL: [Side; 3] = [Side::Beluga, Side::RedisAlways, Side::RedisEverysec];

    pub fn name(self) -> &'static str {
        match self {
            Side::Beluga => "Beluga",
            Side::RedisAlways => "Redis always",
            Side::RedisEverysec => "Redis everysec",
        }
    }

    /// Ports 16420 and up are this program's; 16429 is the last.
    fn port(self) -> u16 {
        16420 + self as u16
    }

    pub fn from_name(name: &str) -> Option<Side> {
        Side::ALL.into_iter().find(|side| side.name().replace(' ', "-").eq_ignore_ascii_case(name))
    }
}

/// Paths of the programs, and the folder for data.
pub struct Place {
    pub beluga: PathBuf,
    pub redis: PathBuf,
    pub work: WorkFolder,
}

#[derive(Clone, Default, Debug)]
pub struct Launch {
    /// Beluga's memory setting, in MiB; `memory_mib_default` when absent. Redis has none: it holds everything in memory.
    pub memory_mib: Option<u64>,
    /// Processors the server may use; all when absent.
    pub cores: Option<Vec<usize>>,
    /// Further arguments, after all others.
    pub more: Vec<String>,
    /// Another port than the side's own, for a second server of the same side.
    pub port: Option<u16>,
}

pub struct Server {
    pub side: Side,
    pub address: SocketAddr,
    /// From the start of the process to the first answered PING.
    pub started_in: Duration,
    child: Child,
    data: PathBuf,
    command: String,
}

const START_PATIENCE: Duration = Duration::from_secs(600);
const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// The program, killed by the kernel when this one ends without cleaning up. `setpriv` (util-linux) replaces itself by
/// the program, so the process id is the program's.
fn dies_with_us(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

impl Side {
    fn command(self, place: &Place, launch: &Launch, data: &Path) -> Command {
        let port = launch.port.unwrap_or(self.port()).to_string();
        let mut command;
        match self {
            Side::Beluga => {
                command = dies_with_us(&place.beluga);
                command.arg("--data").arg(data).args([
                    "--redis-port",
                    &port,
                    "--mysql-port",
                    "0",
                    "--loose-postgres-port",
                    "0",
                    "--max-connections",
                    "15000",
                ]);
                let memory_mib = launch.memory_mib.unwrap_or(memory_mib_default());
                command.args(["--memory", &format!("{memory_mib}mb")]);
            }
            Side::RedisAlways | Side::RedisEverysec => {
                let policy = if self == Side::RedisAlways { "always" } else { "everysec" };
                command = dies_with_us(&place.redis);
                command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--loglevel", "warning"]);
                command.args(["--maxclients", "15000", "--appendonly", "yes", "--appendfsync", policy]);
                command.arg("--dir").arg(data);
            }
        }
        command.args(&launch.more);
        command
    }
}

/// Several servers run at once, so Beluga's own default, more than half of the machine, is too much here.
pub fn memory_mib_default() -> u64 {
    ((Machine::read().memory_bytes >> 20) / 6).clamp(64, 4096)
}

impl Server {
    /// Starts on the data that `name` holds within the work folder, or on none.
    pub fn start(side: Side, place: &Place, name: &str, launch: &Launch) -> io::Result<Server> {
        let data = place.work.path().join(format!("{name}-{}", side.name().replace(' ', "-").to_lowercase()));
        fs::create_dir_all(&data)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, launch.port.unwrap_or(side.port())));
        if Control::connect(address).is_ok() {
            return Err(io::Error::other(format!("{address} is in use; the figures need a server of their own")));
        }
        let mut command = side.command(place, launch, &data);
        let log = fs::File::create(data.with_extension("log"))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let text = format!("{command:?}").replace('"', "");

        // A child inherits the affinity of the thread that starts it: so no thread of it ever runs elsewhere.
        let mine = machine::allowed_cores();
        machine::pin_current_thread(launch.cores.as_deref().unwrap_or(&mine))?;
        let spawned = command.spawn();
        machine::pin_current_thread(&mine)?;
        let child = spawned.map_err(|error| io::Error::other(format!("{text}: {error}")))?;

        let mut server = Server { side, address, started_in: Duration::ZERO, child, data, command: text };
        server.wait_until_serving()?;
        Ok(server)
    }

    fn wait_until_serving(&mut self) -> io::Result<()> {
        let start = Instant::now();
        loop {
            let answer = Control::connect(self.address).and_then(|mut control| control.call(&["PING"]));
            if answer.is_ok() {
                self.started_in = start.elapsed();
                return Ok(());
            }
            let gone = self.child.try_wait()?;
            if gone.is_some() || start.elapsed() > START_PATIENCE {
                let log = fs::read_to_string(self.data.with_extension("log")).unwrap_or_default();
                let said = log.lines().rev().take(5).collect::<Vec<_>>().join(" | ");
                return Err(io::Error::other(format!("{} does not serve ({gone:?}): {said}", self.command)));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn data(&self) -> &Path {
        &self.data
    }

    pub fn shape(&self) -> Shape {
        Shape::new(self.address)
    }

    pub fn control(&self) -> io::Result<Control> {
        Control::connect(self.address)
    }

    /// Waits until the server does nothing any more: its deferred work must not run in the next one's turn.
    pub fn settle(&self, patience: Duration) {
        process::settle(self.pid(), patience);
    }

    /// Sends SIGKILL and keeps the data, like a power cut for the process.
    pub fn kill(mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(|_| ())
    }

    /// SIGTERM and a bounded wait; the data stays. Returns all that the process has used, its last checkpoint included.
    pub fn stop(mut self) -> io::Result<process::Usage> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        let start = Instant::now();
        // A dead process keeps its counters until it is waited for.
        while !process::is_dead(self.pid()) {
            if start.elapsed() > STOP_PATIENCE {
                return Err(io::Error::other(format!("{} does not stop after SIGTERM", self.command)));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let usage = process::usage(self.pid());
        self.child.wait()?;
        Ok(usage)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Place {
    /// Returns the programs' version texts, for the head of a page.
    pub fn versions(&self) -> Vec<String> {
        let version = |program: &Path| {
            let said = Command::new(program).arg("--version").output().ok()?.stdout;
            let said = String::from_utf8_lossy(&said).lines().next()?.trim().to_string();
            Some(format!("`{said}`"))
        };
        [&self.beluga, &self.redis].into_iter().filter_map(|program| version(program)).collect()
    }
}

const WORK_PREFIX: &str = "bench-data-";

/// A folder for data that is removed with everything in it when the measurement ends, however it ends.
pub struct WorkFolder(PathBuf);

impl WorkFolder {
    pub fn create(under: &Path) -> io::Result<WorkFolder> {
        fs::create_dir_all(under)?;
        // An interrupted run could not clean up; its process id is no longer alive.
        for entry in fs::read_dir(under)?.flatten() {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.strip_prefix(WORK_PREFIX)?.parse().ok());
            if pid.is_some_and(process::is_dead) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        let path = std::path::absolute(under.join(format!("{WORK_PREFIX}{}", std::process::id())))?;
        fs::create_dir_all(&path)?;
        Ok(WorkFolder(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
