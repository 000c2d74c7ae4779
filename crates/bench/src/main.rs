//! Load generator and comparisons. Imports nothing of the product but a client library: to it Beluga is a program that speaks protocols.
#![forbid(unsafe_code)]

mod cases;
mod clients;
mod control;
mod goals;
mod load;
mod machine;
mod measure;
mod options;
mod orca;
mod postgres;
mod probe;
mod process;
mod server;
mod setup;
mod sql;
mod svg;
mod table;
mod tpcc;
mod tpch;
mod types;
mod xrpc;

use std::io;
use std::process::ExitCode;

use options::Command;

const INDEX: &str = "\
# Speed, measured

- [Goals and figures](goals.md): Beluga beside Redis, the disk and itself; targets and results.
- [The 48 rows of the reference table](orca.md): connections, value sizes, pipelines and mixes.
- [sysbench beside MariaDB and PostgreSQL](sysbench.md): transactions and server CPU of each oltp script (`bench -- sysbench`).
- [The same with data four times as large as memory](sysbench-bounded.md): each server in a cgroup (`bench -- sysbench --bounded`).
- [A load like TPC-C's beside MariaDB](tpcc.md): New-Orders a minute, CPU and waits of each transaction, consistency conditions (`bench -- tpcc`).
- [TPC-H's queries beside MariaDB](tpch.md): 22 answers compared, times side by side (`bench -- tpch`).
- [sysbench through the PostgreSQL door, beside PostgreSQL](sysbench-postgres.md) (`bench -- sysbench --sides beluga-pg,postgresql --page sysbench-postgres`).
- [The same with data twice as large as memory](sysbench-postgres-bounded.md): each server in a cgroup (`--bounded`).
- [pgbench, bulk statements and idle connections beside PostgreSQL](postgres.md) (`bench -- postgres`).
- [TPC-H's queries beside PostgreSQL](tpch-postgres.md) (`bench -- tpch --sides beluga-pg,postgresql --page tpch-postgres`).
- [XRPC beside gRPC, a plain echo, MySQL's protocol and MariaDB](xrpc.md): up to 4,096 requests at once (`bench -- xrpc`).
- [redis-benchmark, a load of single replies, and sysbench](clients.md): Beluga beside Redis and MariaDB through other people's clients (`bench -- clients`).
- [Redis' data types, command by command](redis-types.md): redis-benchmark's default list and more beside Redis (`bench -- types`).
- [A database in a Ceph cluster beside one in a folder](shared.md): writes, transactions, reads and takeovers (`scripts/shared_storage.py`).

All pages, the CSV files and the plots here are written by `make bench` and those commands; the commands in tpcc.md, tpch.md and sysbench.md name the rounds that they were run with. Each page describes its method; the program is [bench](../../crates/bench/README.md).
";

fn main() -> ExitCode {
    let command = match options::parse(std::env::args_os()) {
        Ok(command) => command,
        Err(message) => {
            eprintln!("bench: {message}");
            return ExitCode::from(64);
        }
    };
    match run(command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns true if every requested part was measured and no request failed.
fn run(command: Command) -> io::Result<bool> {
    match command {
        Command::Help => print!("{}", options::HELP),
        Command::Load(shape) => {
            let report = load::run(&shape, || {})?;
            print!("{}", report.text());
            return Ok(report.error_count() == 0);
        }
        Command::Cases { setup, only } => return goals::cases(&setup, &only),
        Command::Goals { setup, part } => return goals::run(&setup, part.as_deref()),
        Command::Orca { setup, options } => return orca::run(&setup, &options),
        Command::Sysbench { setup, options } => return sql::run(&setup, &options),
        Command::Tpcc { setup, options } => return tpcc::run(&setup, &options),
        Command::Tpch { setup, options } => return tpch::run(&setup, &options),
        Command::Postgres { setup, options } => return postgres::run(&setup, &options),
        Command::Clients { setup, options } => return clients::run(&setup, &options),
        Command::Types { setup, options } => return types::run(&setup, &options),
        Command::Xrpc { setup, options } => return xrpc::run(&setup, &options),
        Command::Peer { kind, port } => return xrpc::peer::serve(kind, port),
        Command::All { setup, options } => {
            let complete = goals::run(&setup, None)? & orca::run(&setup, &options)?;
            setup.publish("README", INDEX, &[], &[])?;
            return Ok(complete);
        }
    }
    Ok(true)
}
