//! The servers that speak SQL: their command lines, their first start, their end.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::process;

const START_PATIENCE: Duration = Duration::from_secs(120);
const STOP_PATIENCE: Duration = Duration::from_secs(60);
/// The port of Beluga's XRPC door.
pub const XRPC_PORT: u16 = 16450;
/// The user of PostgreSQL when this program runs as root, which PostgreSQL refuses.
const NOBODY: &str = "65534";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SqlSide {
    /// Its MySQL door.
    Beluga,
    MariaDb,
    PostgreSql,
    /// Its PostgreSQL door.
    BelugaPostgres,
}

/// The parameters by which sysbench connects to a server.
pub struct Driver {
    pub name: &'static str,
    pub arguments: Vec<String>,
}

impl SqlSide {
    pub const ALL: [SqlSide; 4] = [SqlSide::Beluga, SqlSide::MariaDb, SqlSide::PostgreSql, SqlSide::BelugaPostgres];

    /// Whether the server is Beluga and not a peer.
    pub fn is_ours(self) -> bool {
        matches!(self, SqlSide::Beluga | SqlSide::BelugaPostgres)
    }

    pub fn name(self) -> &'static str {
        match self {
            SqlSide::Beluga => "Beluga",
            SqlSide::MariaDb => "MariaDB",
            SqlSide::PostgreSql => "PostgreSQL",
            SqlSide::BelugaPostgres => "Beluga-PG",
        }
    }

    pub fn from_name(name: &str) -> Option<SqlSide> {
        SqlSide::ALL.into_iter().find(|side| side.name().eq_ignore_ascii_case(name))
    }

    /// Whether its clients are MySQL's; otherwise they are PostgreSQL's.
    pub fn speaks_mysql(self) -> bool {
        matches!(self, SqlSide::Beluga | SqlSide::MariaDb)
    }

    pub fn user(self) -> &'static str {
        match self {
            SqlSide::Beluga | SqlSide::MariaDb => "root",
            SqlSide::PostgreSql => "bench",
            SqlSide::BelugaPostgres => "postgres",
        }
    }

    pub fn port(self) -> u16 {
        16440 + self as u16
    }

    pub fn driver(self) -> Driver {
        let name = if self.speaks_mysql() { "mysql" } else { "pgsql" };
        let (port, user) = (self.port(), self.user());
        let arguments =
            ["host=127.0.0.1".to_string(), format!("port={port}"), format!("user={user}"), "db=sbtest".into()];
        Driver { name, arguments: arguments.iter().map(|argument| format!("--{name}-{argument}")).collect() }
    }
}

/// The memory of a server.
#[derive(Clone, Copy)]
pub struct Memory {
    /// For its pages.
    pub mib: u64,
    /// Whether the server is bounded by a cgroup: the data does not fit.
    pub bounded: bool,
}

impl Memory {
    /// The limit of a bounded server, the page cache of its files included.
    fn limit_mib(self) -> u64 {
        self.mib * 5 / 4 + 96
    }

    fn of_postgres(self) -> u64 {
        if self.bounded { self.mib / 4 } else { self.mib }
    }

    pub fn words(self) -> String {
        match self.bounded {
            false => format!("{} MiB for its pages, which hold all data,", self.mib),
            true => format!(
                "{} MiB for its pages (PostgreSQL {} and the system's cache) and cannot take more than {} MiB in all (a memory cgroup)",
                self.mib,
                self.of_postgres(),
                self.limit_mib()
            ),
        }
    }

    /// Creates a memory cgroup of that limit, where the machine permits it.
    fn cgroup(self, side: SqlSide) -> io::Result<PathBuf> {
        let root = Path::new("/sys/fs/cgroup");
        let is_second = root.join("cgroup.controllers").exists();
        let (parent, file) = match is_second {
            true => (root.to_owned(), "memory.max"),
            false => (root.join("memory"), "memory.limit_in_bytes"),
        };
        let folder = parent.join(format!("beluga-bench-{}", side.name().to_lowercase()));
        let made = || {
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(file), (self.limit_mib() << 20).to_string())
        };
        made().map_err(|error| {
            io::Error::other(format!("--bounded needs a memory cgroup, and {}: {error}", folder.display()))
        })?;
        Ok(folder)
    }
}

/// Paths of the servers' programs.
pub struct Programs {
    pub beluga: PathBuf,
    pub mariadbd: PathBuf,
    pub mariadb: PathBuf,
    /// The folder of `postgres` and `initdb`.
    pub postgres: PathBuf,
}

impl Programs {
    /// Debian's places. A PostgreSQL that `scripts/postgres.sh` has installed comes before Debian's.
    pub fn debian(beluga: PathBuf) -> Programs {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let newest = versions.map(|entry| entry.path().join("bin")).filter(|path| path.join("postgres").exists()).max();
        let said = Command::new("scripts/postgres.sh").arg("bin").stderr(Stdio::null()).output();
        let installed = said.map(|said| PathBuf::from(String::from_utf8_lossy(&said.stdout).trim()));
        let newest = installed.ok().filter(|bin| bin.join("postgres").exists()).or(newest);
        Programs {
            beluga,
            mariadbd: "/usr/sbin/mariadbd".into(),
            mariadb: "/usr/bin/mariadb".into(),
            postgres: newest.unwrap_or_default(),
        }
    }

    /// Returns a side's version text.
    pub fn version(&self, side: SqlSide) -> String {
        let program = match side {
            SqlSide::Beluga | SqlSide::BelugaPostgres => self.beluga.clone(),
            SqlSide::MariaDb => self.mariadbd.clone(),
            SqlSide::PostgreSql => self.postgres.join("postgres"),
        };
        let said = Command::new(program).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).lines().next().unwrap_or_default().to_string();
        // MariaDB begins with the path that it was started by.
        said.rsplit_once('/').map_or(said.clone(), |(_, name)| name.to_string())
    }
}

pub struct SqlServer {
    pub side: SqlSide,
    child: Child,
    log: PathBuf,
    cgroup: Option<PathBuf>,
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

/// A command for `program`, run as the user nobody when this program is root.
fn unprivileged(program: PathBuf) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]).arg(program);
    command
}

impl SqlServer {
    /// Starts a server with the empty data folder `data` and creates a database.
    pub fn start(
        side: SqlSide,
        programs: &Programs,
        data: &Path,
        memory: Memory,
        database: &str,
    ) -> io::Result<SqlServer> {
        fs::create_dir_all(data)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, side.port()));
        if TcpStream::connect(address).is_ok() {
            return Err(io::Error::other(format!("{address} is in use; the figures need a server of their own")));
        }
        let mut command = match side {
            SqlSide::Beluga | SqlSide::BelugaPostgres => beluga(side, programs, data, memory.mib),
            SqlSide::MariaDb => mariadb(programs, data, memory.mib)?,
            SqlSide::PostgreSql => postgres(programs, data, memory.of_postgres())?,
        };
        let log = data.with_extension("log");
        let file = fs::File::create(&log)?;
        let child = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn();
        let child = child.map_err(|error| io::Error::other(format!("{command:?}: {error}")))?;
        let mut server = SqlServer { side, child, log, cgroup: None };
        if memory.bounded {
            let cgroup = server.cgroup.insert(memory.cgroup(side)?);
            fs::write(cgroup.join("cgroup.procs"), server.child.id().to_string())?;
        }
        server.wait_until_serving(address)?;
        server.make_database(programs, database)?;
        Ok(server)
    }

    fn wait_until_serving(&mut self, address: SocketAddr) -> io::Result<()> {
        let start = Instant::now();
        while !serves(self.side, address) {
            let gone = self.child.try_wait()?;
            if gone.is_some() || start.elapsed() > START_PATIENCE {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                let said = log.lines().rev().take(5).collect::<Vec<_>>().join(" | ");
                return Err(io::Error::other(format!("{} does not serve ({gone:?}): {said}", self.side.name())));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn make_database(&self, programs: &Programs, database: &str) -> io::Result<()> {
        let port = self.side.port().to_string();
        match self.side {
            SqlSide::Beluga | SqlSide::MariaDb => run(Command::new(&programs.mariadb)
                .args(["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "root"])
                .args(["-e", &format!("create database {database}")])),
            SqlSide::PostgreSql | SqlSide::BelugaPostgres => {
                let user = self.side.user();
                let mut psql = Command::new(programs.postgres.join("psql"));
                psql.args(["-X", "-h", "127.0.0.1", "-p", &port, "-U", user, "-d", "postgres"]);
                run(psql.args(["-c", &format!("create database {database}")]))
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server is idle, so that its deferred work does not run in another server's turn (BE-3).
    pub fn settle(&self, patience: Duration) {
        process::settle(self.pid(), patience);
    }
}

impl Drop for SqlServer {
    fn drop(&mut self) {
        self.stop();
        if let Some(cgroup) = &self.cgroup {
            let _ = fs::remove_dir(cgroup);
        }
    }
}

impl SqlServer {
    fn stop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let start = Instant::now();
        while start.elapsed() < STOP_PATIENCE {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the server answers. In MySQL's protocol it sends the first packet; PostgreSQL accepts a login, or reports that it is still starting.
fn serves(side: SqlSide, address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
    const LET_IN: u8 = b'R';
    if side.speaks_mysql() {
        return matches!(stream.read(&mut [0; 1]), Ok(1));
    }
    let user = side.user();
    let parameters = format!("user\0{user}\0database\0postgres\0\0");
    let length = (8 + parameters.len()) as u32;
    let startup = [&length.to_be_bytes()[..], &[0, 3, 0, 0], parameters.as_bytes()].concat();
    let mut first = [0; 1];
    stream.write_all(&startup).is_ok() && matches!(stream.read(&mut first), Ok(1)) && first == [LET_IN]
}

/// The door of the side listens on the side's port. The MySQL door and XRPC's run together.
fn beluga(side: SqlSide, programs: &Programs, data: &Path, memory_mib: u64) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(&programs.beluga).arg("--data").arg(data);
    let port = side.port().to_string();
    match side {
        SqlSide::BelugaPostgres => command.args(["--postgres-port", &port, "--mysql-port", "0", "--xrpc-port", "0"]),
        _ => command.args(["--mysql-port", &port, "--loose-postgres-port", "0", "--xrpc-port", &XRPC_PORT.to_string()]),
    };
    command.args(["--redis-port", "0"]);
    command.args(["--memory", &format!("{memory_mib}mb"), "--max-connections", "5000"]);
    command.args(["--max-prepared-stmt-count", "1048576"]);
    command
}

fn mariadb(programs: &Programs, data: &Path, memory_mib: u64) -> io::Result<Command> {
    let folder = format!("--datadir={}", data.display());
    let mut install = Command::new("mariadb-install-db");
    run(install.args([
        "--no-defaults",
        &folder,
        "--auth-root-authentication-method=normal",
        "--user=root",
        "--skip-test-db",
    ]))?;
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(&programs.mariadbd).args(["--no-defaults", &folder, "--user=root"]);
    command.arg(format!("--socket={}", data.join("socket").display()));
    command.args([format!("--port={}", SqlSide::MariaDb.port()), "--bind-address=127.0.0.1".into()]);
    command.args([
        "--max-connections=5000",
        "--max-prepared-stmt-count=1048576",
        "--skip-log-bin",
        "--performance-schema=off",
    ]);
    command.args(["--innodb-flush-log-at-trx-commit=1", "--innodb-flush-method=O_DIRECT", "--innodb-log-file-size=1G"]);
    command.arg(format!("--innodb-buffer-pool-size={memory_mib}M"));
    Ok(command)
}

fn postgres(programs: &Programs, data: &Path, memory_mib: u64) -> io::Result<Command> {
    if rustix::process::geteuid().is_root() {
        run(Command::new("chown").args([NOBODY, &data.display().to_string()]))?;
    }
    let mut initdb = unprivileged(programs.postgres.join("initdb"));
    run(initdb.arg("-D").arg(data).args(["-U", "bench", "-A", "trust", "--locale=C.UTF-8"]))?;
    let mut command = unprivileged(programs.postgres.join("postgres"));
    command.arg("-D").arg(data).args([
        "-p",
        &SqlSide::PostgreSql.port().to_string(),
        "-c",
        "listen_addresses=127.0.0.1",
    ]);
    command.args(["-c", "unix_socket_directories=", "-c", "max_connections=1200", "-c", "max_wal_size=4GB"]);
    command.arg("-c").arg(format!("shared_buffers={memory_mib}MB"));
    Ok(command)
}
