//! The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), and of its form with channel binding.
//!
//! ```text
//!   client: n,,n=,r=NONCE ──► server: r=NONCE+OURS,s=SALT,i=4096 ──► client: c=biws,r=NONCE+OURS,p=PROOF ──► server: v=SIGNATURE
//! ```
//! With `SCRAM-SHA-256-PLUS` the client's last message holds the hash of the certificate that it has seen, and the proof covers it: nobody between client and
//! server can pass the exchange on.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use engine::ScramVerifier;
use sql_postgres::error::{PgError, Result};

use crate::errors;

pub const PLAIN: &str = "SCRAM-SHA-256";
pub const PLUS: &str = "SCRAM-SHA-256-PLUS";
/// The longest message of the client, as in PostgreSQL.
pub const MESSAGE_MAX: usize = 1024;
const BINDING: &str = "tls-server-end-point";
const NONCE_BYTES: usize = 18;

/// An exchange after the client's first message.
#[derive(Debug)]
pub struct Exchange {
    verifier: ScramVerifier,
    /// The header of the client's first message, and the data of the channel.
    binding: Vec<u8>,
    /// Both nonces.
    nonce: String,
    client_first_bare: String,
    server_first: String,
}

fn malformed(detail: impl Into<Box<str>>) -> PgError {
    errors::protocol("malformed SCRAM message").detail(detail)
}

/// Takes an attribute `name=value` off the front.
fn attribute<'a>(text: &mut &'a str, name: char) -> Result<&'a str> {
    let (one, rest) = text.split_once(',').unwrap_or((text, ""));
    let value = one.strip_prefix(name).and_then(|one| one.strip_prefix('='));
    let value = value.ok_or_else(|| malformed(format!("Expected attribute \"{name}\".")))?;
    *text = rest;
    Ok(value)
}

fn text(message: &[u8]) -> Result<&str> {
    if message.is_empty() {
        return Err(malformed("The message is empty."));
    }
    let text = std::str::from_utf8(message).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| malformed("Message length does not match input length."))
}

impl Exchange {
    /// Reads the client's first message and returns the answer. `channel` is the hash of the server's certificate if the connection has one to bind to.
    pub fn begin(
        mechanism: &str,
        message: &[u8],
        verifier: ScramVerifier,
        channel: Option<&[u8]>,
    ) -> Result<(Exchange, String)> {
        let message = text(message)?;
        let is_bound = mechanism == PLUS;
        let (flag, rest) = message.split_once(',').ok_or_else(|| malformed("Unexpected end of message."))?;
        check_flag(flag, is_bound, channel.is_some())?;
        let (identity, bare) = rest.split_once(',').ok_or_else(|| malformed("Unexpected end of message."))?;
        if !identity.is_empty() {
            return Err(errors::unsupported("client uses authorization identity, but it is not supported"));
        }
        if bare.starts_with("m=") {
            return Err(errors::unsupported("client requires an unsupported SCRAM extension"));
        }
        let mut attributes = bare;
        // The startup message has named the user already.
        attribute(&mut attributes, 'n')?;
        let client_nonce = attribute(&mut attributes, 'r')?;
        if client_nonce.is_empty() || !client_nonce.bytes().all(|byte| matches!(byte, b'!'..=b'~')) {
            return Err(errors::protocol("non-printable characters in SCRAM nonce"));
        }
        let mut own = [0; NONCE_BYTES];
        os::entropy(&mut own).expect("the kernel has random bytes");
        let nonce = format!("{client_nonce}{}", BASE64_STANDARD.encode(own));
        let server_first = format!("r={nonce},s={},i={}", BASE64_STANDARD.encode(&verifier.salt), verifier.iterations);
        let mut binding = message.as_bytes()[..message.len() - bare.len()].to_vec();
        binding.extend(channel.filter(|_| is_bound).into_iter().flatten());
        let exchange = Exchange {
            verifier,
            binding,
            nonce,
            client_first_bare: bare.to_owned(),
            server_first: server_first.clone(),
        };
        Ok((exchange, server_first))
    }

    /// Reads the client's last message and returns the server's, or `None` if the proof is wrong.
    pub fn finish(&self, message: &[u8]) -> Result<Option<String>> {
        let message = text(message)?;
        let mut rest = message;
        let binding = attribute(&mut rest, 'c')?;
        if BASE64_STANDARD.decode(binding).ok().as_deref() != Some(&self.binding[..]) {
            return Err(match self.binding.starts_with(b"p") {
                true => PgError::new("28000", "SCRAM channel binding check failed"),
                false => errors::protocol("unexpected SCRAM channel-binding attribute in client-final-message"),
            });
        }
        if attribute(&mut rest, 'r')? != self.nonce {
            return Err(errors::protocol("invalid SCRAM response").detail("Nonce does not match."));
        }
        // Extensions may be between the nonce and the proof, which is the last attribute.
        let (without_proof, proof) = match rest.strip_prefix("p=") {
            Some(proof) => (&message[..message.len() - rest.len() - 1], proof),
            None => {
                let at = message.rfind(",p=").ok_or_else(|| malformed("Expected attribute \"p\"."))?;
                (&message[..at], &message[at + 3..])
            }
        };
        let proof = BASE64_STANDARD.decode(proof).ok().and_then(|proof| <[u8; 32]>::try_from(proof).ok());
        let proof = proof.ok_or_else(|| malformed("Malformed proof in client-final-message."))?;
        let signed = format!("{},{},{without_proof}", self.client_first_bare, self.server_first);
        if !self.verifier.is_proof(signed.as_bytes(), &proof) {
            return Ok(None);
        }
        let signature = self.verifier.server_signature(signed.as_bytes());
        Ok(Some(format!("v={}", BASE64_STANDARD.encode(signature))))
    }
}

/// Judges the flag for channel binding. A client that could bind and believes that the server cannot has been deceived if the server can.
fn check_flag(flag: &str, is_bound: bool, can_bind: bool) -> Result<()> {
    match flag {
        "n" | "y" if is_bound => {
            Err(malformed("The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel binding data."))
        }
        "y" if can_bind => Err(PgError::new("28000", "SCRAM channel binding negotiation error").detail(
            "The client supports SCRAM channel binding but thinks the server does not.  However, this server does support channel binding.",
        )),
        "n" | "y" => Ok(()),
        flag if flag.starts_with("p=") && !is_bound => {
            Err(malformed("The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes channel binding data."))
        }
        flag => match flag.strip_prefix("p=") {
            Some(BINDING) => Ok(()),
            Some(kind) => Err(errors::protocol(format!("unsupported SCRAM channel-binding type \"{kind}\""))),
            None => Err(malformed(format!("Unexpected channel-binding flag \"{flag}\"."))),
        },
    }
}

#[cfg(test)]
mod tests;
