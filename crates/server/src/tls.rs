//! The TLS configuration of the doors, from the certificate files in the settings. The files are read at the start; a restart reads them again.

use std::sync::Arc;

use reactor::TlsConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{WantsServerCert, WebPkiClientVerifier};
use rustls::{ConfigBuilder, RootCertStore};

use crate::exit::{Exit, Failure};
use crate::settings::{Name, Settings};

/// Returns the configuration of the Redis door's TLS port.
pub fn redis(settings: &Settings) -> Result<Arc<TlsConfig>, Failure> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = TlsConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::new(Exit::Internal, format!("TLS: {error}")))?;
    let who = settings.text(Name::RedisTlsAuthClients);
    let builder = if who == "no" {
        builder.with_no_client_auth()
    } else {
        let file = path(settings, Name::RedisTlsCaFile, "redis_tls_ca_cert_file", "redis_tls_auth_clients needs it")?;
        let mut roots = RootCertStore::empty();
        for certificate in certificates("redis_tls_ca_cert_file", &file)? {
            roots.add(certificate).map_err(|error| wrong("redis_tls_ca_cert_file", &file, &error))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = if who == "optional" { verifier.allow_unauthenticated() } else { verifier };
        let verifier = verifier.build().map_err(|error| wrong("redis_tls_ca_cert_file", &file, &error))?;
        builder.with_client_cert_verifier(verifier)
    };
    let needed = "redis_tls_port needs it";
    let chain_file = path(settings, Name::RedisTlsCertFile, "redis_tls_cert_file", needed)?;
    let key_file = path(settings, Name::RedisTlsKeyFile, "redis_tls_key_file", needed)?;
    finish(builder, ("redis_tls_cert_file", &chain_file), ("redis_tls_key_file", &key_file))
}

/// Returns the configuration of the MySQL door, or None if no certificate is set.
pub fn mysql(settings: &Settings) -> Result<Option<Arc<TlsConfig>>, Failure> {
    on_the_same_port(
        settings,
        (Name::MysqlSslCert, "mysql_ssl_cert"),
        (Name::MysqlSslKey, "mysql_ssl_key"),
        (Name::MysqlRequireSecureTransport, "mysql_require_secure_transport needs it"),
    )
}

/// Returns the configuration of the PostgreSQL door and its certificate, or None if no certificate is set.
pub fn postgres(settings: &Settings) -> Result<Option<door_postgres::Tls>, Failure> {
    let config = on_the_same_port(
        settings,
        (Name::PostgresSslCert, "postgres_ssl_cert"),
        (Name::PostgresSslKey, "postgres_ssl_key"),
        (Name::PostgresRequireSecureTransport, "postgres_require_secure_transport needs it"),
    )?;
    let Some(config) = config else { return Ok(None) };
    let chain = certificates("postgres_ssl_cert", &settings.text(Name::PostgresSslCert))?;
    Ok(Some(door_postgres::Tls { config, certificate: chain[0].to_vec() }))
}

/// Returns the configuration of the XRPC door, or None if no certificate is set.
pub fn xrpc(settings: &Settings) -> Result<Option<Arc<TlsConfig>>, Failure> {
    on_the_same_port(
        settings,
        (Name::XrpcSslCert, "xrpc_ssl_cert"),
        (Name::XrpcSslKey, "xrpc_ssl_key"),
        (Name::XrpcRequireSecureTransport, "xrpc_require_secure_transport needs it"),
    )
}

/// Returns the configuration of a door whose clients choose TLS. Each setting comes with its name; the last one says why a certificate is needed if TLS is
/// required.
fn on_the_same_port(
    settings: &Settings,
    (cert, cert_setting): (Name, &str),
    (key, key_setting): (Name, &str),
    (required, why): (Name, &str),
) -> Result<Option<Arc<TlsConfig>>, Failure> {
    let is_set = |name| !settings.text(name).is_empty();
    if !is_set(cert) && !is_set(key) {
        if settings.is_on(required) {
            path(settings, cert, cert_setting, why)?;
        }
        return Ok(None);
    }
    let chain_file = path(settings, cert, cert_setting, &format!("{key_setting} needs it"))?;
    let key_file = path(settings, key, key_setting, &format!("{cert_setting} needs it"))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = TlsConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::new(Exit::Internal, format!("TLS: {error}")))?
        .with_no_client_auth();
    finish(builder, (cert_setting, &chain_file), (key_setting, &key_file)).map(Some)
}

/// Adds the server's own certificate and key, each with the name of its setting.
fn finish(
    builder: ConfigBuilder<TlsConfig, WantsServerCert>,
    (chain_setting, chain_file): (&str, &str),
    (key_setting, key_file): (&str, &str),
) -> Result<Arc<TlsConfig>, Failure> {
    let chain = certificates(chain_setting, chain_file)?;
    let key = PrivateKeyDer::from_pem_file(key_file).map_err(|error| wrong(key_setting, key_file, &error))?;
    let config = builder.with_single_cert(chain, key).map_err(|error| wrong(key_setting, key_file, &error))?;
    Ok(Arc::new(config))
}

fn path(settings: &Settings, name: Name, setting: &str, why: &str) -> Result<String, Failure> {
    let path = settings.text(name);
    if path.is_empty() {
        return Err(Failure::new(Exit::Config, format!("{setting} is not set, and {why}; name a PEM file")));
    }
    Ok(path)
}

fn certificates(setting: &str, file: &str) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|error| wrong(setting, file, &error))?;
    if found.is_empty() { Err(wrong(setting, file, &"it holds no certificate")) } else { Ok(found) }
}

fn wrong(setting: &str, file: &str, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Config, format!("{setting}: '{file}' cannot be used: {why}"))
}
