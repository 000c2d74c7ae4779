//! AES_ENCRYPT and AES_DECRYPT, in the modes that `block_encryption_mode` names. The cipher and its modes are RustCrypto's; CFB of single bits is here, for no
//! crate has it.
//!
//! Texts that MySQL has encrypted must be readable: a key of any length is folded into the cipher's by XOR, and ECB and CBC pad as PKCS #7 does.

use aes::cipher::block_padding::Pkcs7;
use aes::cipher::consts::U16;
use aes::cipher::generic_array::GenericArray;
use aes::cipher::{
    AsyncStreamCipher, BlockCipher, BlockDecryptMut, BlockEncrypt, BlockEncryptMut, BlockSizeUser, KeyInit, KeyIvInit,
    StreamCipher,
};
use aes::{Aes128, Aes192, Aes256};

use super::entry::{Args, FunctionEntry, Returns, row};
use crate::error;
use crate::scalar::bind;
use crate::scalar::block_encryption::{BLOCK, Chain, Mode};
use crate::scalar::settings::Settings;
use crate::scalar::state::StateOf as _;
use crate::types::{Collation, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr};
use query::nodes::function::Run;

pub const FUNCTIONS: &[FunctionEntry] = &[
    row(&["aes_encrypt"], 2, 6, Returns::Custom(type_of_encrypted), Run::Values(encrypt)),
    row(&["aes_decrypt"], 2, 6, Returns::Custom(type_of_decrypted), Run::Values(decrypt)),
];

type Block = [u8; BLOCK];

/// Folds a key of any length into `length` bytes by XOR.
fn folded(key: &[u8], length: usize) -> Vec<u8> {
    let mut folded = vec![0; length];
    for (at, byte) in key.iter().enumerate() {
        folded[at % length] ^= byte;
    }
    folded
}

/// Returns the text under the cipher. `vector` starts the chain, except in ECB.
fn encrypted(text: &[u8], key: &[u8], vector: Block, mode: Mode) -> Vec<u8> {
    let key = folded(key, usize::from(mode.key_bits / 8));
    match mode.key_bits {
        128 => encrypted_by::<Aes128>(text, &key, &vector, mode.chain),
        192 => encrypted_by::<Aes192>(text, &key, &vector, mode.chain),
        _ => encrypted_by::<Aes256>(text, &key, &vector, mode.chain),
    }
}

/// Returns the text that was encrypted, or `None` where the bytes have another length or padding.
fn decrypted(bytes: &[u8], key: &[u8], vector: Block, mode: Mode) -> Option<Vec<u8>> {
    let key = folded(key, usize::from(mode.key_bits / 8));
    match mode.key_bits {
        128 => decrypted_by::<Aes128>(bytes, &key, &vector, mode.chain),
        192 => decrypted_by::<Aes192>(bytes, &key, &vector, mode.chain),
        _ => decrypted_by::<Aes256>(bytes, &key, &vector, mode.chain),
    }
}

/// The blocks of all ciphers here have 16 bytes, and keys are folded to the cipher's length, so no constructor fails.
const FITS: &str = "key and vector have the cipher's lengths";

fn encrypted_by<C>(text: &[u8], key: &[u8], vector: &Block, chain: Chain) -> Vec<u8>
where
    C: BlockCipher + BlockEncrypt + BlockEncryptMut + BlockSizeUser<BlockSize = U16> + KeyInit,
{
    let mut out = text.to_vec();
    match chain {
        Chain::Ecb => {
            return ecb::Encryptor::<C>::new_from_slice(key).expect(FITS).encrypt_padded_vec_mut::<Pkcs7>(text);
        }
        Chain::Cbc => {
            return cbc::Encryptor::<C>::new_from_slices(key, vector)
                .expect(FITS)
                .encrypt_padded_vec_mut::<Pkcs7>(text);
        }
        Chain::Cfb(1) => bits::<C>(&mut out, key, *vector, true),
        Chain::Cfb(8) => cfb8::Encryptor::<C>::new_from_slices(key, vector).expect(FITS).encrypt(&mut out),
        Chain::Cfb(_) => cfb_mode::Encryptor::<C>::new_from_slices(key, vector).expect(FITS).encrypt(&mut out),
        Chain::Ofb => ofb::Ofb::<C>::new_from_slices(key, vector).expect(FITS).apply_keystream(&mut out),
    }
    out
}

fn decrypted_by<C>(bytes: &[u8], key: &[u8], vector: &Block, chain: Chain) -> Option<Vec<u8>>
where
    C: BlockCipher + BlockEncrypt + BlockEncryptMut + BlockDecryptMut + BlockSizeUser<BlockSize = U16> + KeyInit,
{
    let mut out = bytes.to_vec();
    match chain {
        Chain::Ecb => {
            let cipher = ecb::Decryptor::<C>::new_from_slice(key).expect(FITS);
            return cipher.decrypt_padded_vec_mut::<Pkcs7>(bytes).ok();
        }
        Chain::Cbc => {
            let cipher = cbc::Decryptor::<C>::new_from_slices(key, vector).expect(FITS);
            return cipher.decrypt_padded_vec_mut::<Pkcs7>(bytes).ok();
        }
        Chain::Cfb(1) => bits::<C>(&mut out, key, *vector, false),
        Chain::Cfb(8) => cfb8::Decryptor::<C>::new_from_slices(key, vector).expect(FITS).decrypt(&mut out),
        Chain::Cfb(_) => cfb_mode::Decryptor::<C>::new_from_slices(key, vector).expect(FITS).decrypt(&mut out),
        Chain::Ofb => ofb::Ofb::<C>::new_from_slices(key, vector).expect(FITS).apply_keystream(&mut out),
    }
    Some(out)
}

/// CFB of single bits, the highest of each byte first.
fn bits<C: BlockEncrypt + BlockSizeUser<BlockSize = U16> + KeyInit>(
    text: &mut [u8],
    key: &[u8],
    register: Block,
    encrypts: bool,
) {
    let cipher = C::new_from_slice(key).expect(FITS);
    let mut register = u128::from_be_bytes(register);
    for byte in text {
        for place in (0..8).rev() {
            let mut over = GenericArray::clone_from_slice(&register.to_be_bytes());
            cipher.encrypt_block(&mut over);
            let before = *byte >> place & 1;
            *byte ^= (over[0] >> 7) << place;
            let secret = if encrypts { *byte >> place & 1 } else { before };
            register = register << 1 | u128::from(secret);
        }
    }
}

fn bytes_of(argument: &Expr) -> u32 {
    let ty = argument.ty();
    let each = if ty.kind().is_text() { ty.charset().max_bytes() } else { 1 };
    bind::display_length(&ty).saturating_mul(each)
}

fn type_of_encrypted(arguments: &[Expr], _: &Settings) -> Result<Type> {
    Ok(bind::string_type(Mode::default().length(bytes_of(&arguments[0])), Collation::Binary).with_nullable(true))
}

fn type_of_decrypted(arguments: &[Expr], _: &Settings) -> Result<Type> {
    Ok(bind::string_type(bytes_of(&arguments[0]), Collation::Binary).with_nullable(true))
}

/// Returns the initialisation vector: the third argument, where the mode needs one.
fn vector(args: &Args<'_>, mode: Mode, ctx: &mut EvalContext) -> Result<Block> {
    let name = args.call.function.name();
    let mut block = [0; BLOCK];
    match (args.len() > 2, mode.needs_vector()) {
        (false, false) => {}
        (false, true) => return Err(error::WRONG_PARAMCOUNT_TO_NATIVE_FCT.raise(&[&name])),
        (true, false) => ctx.warn(error::WARN_OPTION_IGNORED.raise(&[&"IV"])),
        (true, true) => {
            let given = if args.is_null(2) { Vec::new() } else { args.own_bytes(2, ctx) };
            let given = given.get(..BLOCK).ok_or_else(|| error::AES_INVALID_IV.raise(&[&name, &BLOCK]))?;
            block.copy_from_slice(given);
        }
    }
    Ok(block)
}

/// Text, key and vector of a call.
type Given = (Vec<u8>, Vec<u8>, Block);

/// None: text or key are NULL.
fn given(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Option<Given>> {
    if values.len() > 3 {
        return Err(error::not_supported(format!("{} with a key derivation function", call.function.name())));
    }
    let args = Args::new(call, values);
    let vector = vector(&args, ctx.state().block_encryption, ctx)?;
    if args.is_null(0) || args.is_null(1) {
        return Ok(None);
    }
    Ok(Some((args.own_bytes(0, ctx), args.own_bytes(1, ctx), vector)))
}

fn encrypt(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Some((text, key, vector)) = given(call, values, ctx)? else { return Ok(Value::Null) };
    Ok(super::entry::string_value(call, encrypted(&text, &key, vector, ctx.state().block_encryption), ctx))
}

fn decrypt(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Some((bytes, key, vector)) = given(call, values, ctx)? else { return Ok(Value::Null) };
    let text = decrypted(&bytes, &key, vector, ctx.state().block_encryption);
    Ok(text.map_or(Value::Null, |text| super::entry::string_value(call, text, ctx)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The four blocks of NIST SP 800-38A, and the key of 128 bits that goes with them.
    const TEXT: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";
    const KEY: &str = "2b7e151628aed2a6abf7158809cf4f3c";
    const LONG_KEY: &str = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("digits")).collect()
    }

    fn mode(name: &str) -> Mode {
        Mode::named(&Value::text(name)).expect("a mode")
    }

    #[test]
    fn each_mode_gives_what_the_standard_says() {
        let vector: Block = std::array::from_fn(|at| at as u8);
        for (name, key, first) in [
            ("aes-128-ecb", KEY, "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf"),
            ("aes-256-ecb", LONG_KEY, "f3eed1bdb5d2a03c064b5a7e3db181f8591ccb10d410ed26dc5ba74a31362870"),
            ("aes-128-cbc", KEY, "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2"),
            ("aes-256-cbc", LONG_KEY, "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d"),
            ("aes-128-cfb1", KEY, "68b3"),
            ("aes-128-cfb8", KEY, "3b79424c9c0dd436bace9e0ed4586a4f32b9"),
            ("aes-128-cfb128", KEY, "3b3fd92eb72dad20333449f8e83cfb4ac8a64537a0b3a93fcde3cdad9f1ce58b"),
            ("aes-128-ofb", KEY, "3b3fd92eb72dad20333449f8e83cfb4a7789508d16918f03f53c52dac54ed825"),
        ] {
            let (text, key, first) = (bytes(TEXT), bytes(key), bytes(first));
            let out = encrypted(&text, &key, vector, mode(name));
            assert_eq!(out[..first.len()], first, "{name}");
            assert_eq!(decrypted(&out, &key, vector, mode(name)), Some(text), "{name}");
        }
    }

    #[test]
    fn texts_of_any_length_come_back_in_every_mode() {
        for mode in Mode::all() {
            for length in 0..=49 {
                let text: Vec<u8> = (0..length).map(|at: u8| at.wrapping_mul(7)).collect();
                let out = encrypted(&text, b"key", [9; BLOCK], mode);
                assert_eq!(out.len(), mode.length(length.into()) as usize);
                assert_eq!(decrypted(&out, b"key", [9; BLOCK], mode), Some(text), "{mode:?}");
            }
        }
    }

    #[test]
    fn what_was_not_encrypted_is_told_apart() {
        let out = encrypted(b"text", b"key", [0; BLOCK], Mode::default());
        assert_eq!(decrypted(&out[..15], b"key", [0; BLOCK], Mode::default()), None);
        assert_eq!(decrypted(&out, b"another key", [0; BLOCK], Mode::default()), None);
        assert_eq!(decrypted(b"", b"key", [0; BLOCK], Mode::default()), None);
    }

    #[test]
    fn modes_have_names_and_numbers() {
        let names: Vec<String> = Mode::all().map(Mode::name).collect();
        assert_eq!(
            (names.len(), &*names[0], &*names[5], &*names[17]),
            (18, "aes-128-ecb", "aes-256-cbc", "aes-256-ofb")
        );
        assert_eq!(Mode::named(&Value::UInt(5)).map(Mode::name).as_deref(), Some("aes-256-cbc"));
        assert_eq!(Mode::named(&Value::Int(18)), None);
    }
}
