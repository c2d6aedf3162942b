//! Cases worked by hand from the instruction set's manuals, as an assembler prints them.

use super::scalar::Scalar;
use crate::Target;
use crate::decode::{Instruction, Line, Operation, decode};
use crate::machine::{EXEC, VCC, Wave};

fn instruction(text: &str, target: Target) -> Result<Instruction, String> {
    decode(&Line::parse(&format!("\t{text} // 0: 00000000")).expect("an instruction"), target)
}

/// A wave after an instruction: registers v1 to v6 hold `vectors` in every lane, s1 to s6 `scalars`.
fn after(text: &str, vectors: &[u32], scalars: &[u32], prepare: impl Fn(&mut Wave)) -> Wave {
    let mut wave = Wave::new(0, 0, 16, 0, 0xdead_beef);
    wave.scalars[usize::from(EXEC)..][..2].fill(u32::MAX);
    for (at, value) in (1..).zip(vectors) {
        *wave.arriving(at) = [*value; 64];
    }
    wave.scalars[1..=scalars.len()].copy_from_slice(scalars);
    prepare(&mut wave);
    let instruction = instruction(text, Target::Gfx950).unwrap_or_else(|e| panic!("{text}: {e}"));
    match &instruction.operation {
        Operation::Vector(vector) => vector.execute(&mut wave),
        Operation::Packed(packed) => packed.execute(&mut wave),
        Operation::Scalar(scalar) => Scalar::execute(scalar, &mut wave),
        _ => panic!("{text}: another class"),
    }
    .unwrap_or_else(|e| panic!("{text}: {e}"));
    wave
}

/// v0 of lane 0 after an instruction.
fn vector(text: &str, vectors: &[u32]) -> u32 {
    after(text, vectors, &[], |_| {}).arriving(0)[0]
}

/// s0 and the condition after an instruction.
fn scalar(text: &str, scalars: &[u32]) -> (u32, bool) {
    let wave = after(text, &[], scalars, |_| {});
    (wave.scalars[0], wave.condition)
}

#[test]
fn bits() {
    assert_eq!(
        vector("v_perm_b32 v0, v1, v2, v3", &[0x8877_6655, 0x4433_2211, 0x0d0c_0700]),
        0xff00_8811
    );
    assert_eq!(vector("v_alignbit_b32 v0, v1, v2, 8", &[0x1234_5678, 0x9abc_def0]), 0x789a_bcde);
    assert_eq!(vector("v_bfe_u32 v0, v1, 4, 8", &[0x1234_5678]), 0x67);
    assert_eq!(vector("v_bfe_i32 v0, v1, 4, 4", &[0x0000_0080]), 0xffff_fff8);
    assert_eq!(vector("v_bfi_b32 v0, v1, v2, v3", &[0xff00, 0x1234, 0xabcd]), 0x12cd);
    assert_eq!(vector("v_ffbh_i32_e32 v0, v1", &[0xffff_0000]), 16);
    assert_eq!(
        vector("v_bitop3_b32 v0, v1, v2, v3 bitop3:0xec", &[0xf0, 0xcc, 0xaa]),
        0xf0 & 0xaa | 0xcc
    );
    assert_eq!(vector("v_lshlrev_b16_e32 v0, 4, v1", &[0xffff_1234]), 0x2340);
}

#[test]
fn parts_of_words() {
    let pad = "dst_sel:BYTE_1 dst_unused:UNUSED_PAD src0_sel:BYTE_3 src1_sel:WORD_1";
    assert_eq!(
        vector(&format!("v_add_u32_sdwa v0, v1, v2 {pad}"), &[0x1200_0000, 0x0034_ffff]),
        0x4600
    );
    let keep = "dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD";
    assert_eq!(vector(&format!("v_or_b32_sdwa v0, v1, v2 {keep}"), &[0x11, 0x22]), 0x0033_beef);
    let sign = "dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:DWORD";
    assert_eq!(vector(&format!("v_add_u32_sdwa v0, sext(v1), v2 {sign}"), &[0xfe, 1]), u32::MAX);
}

#[test]
fn signs_scales_and_clamps() {
    let f = f32::to_bits;
    assert_eq!(vector("v_add_f32_e64 v0, -v1, |v2|", &[f(1.0), f(-3.0)]), f(2.0));
    assert_eq!(vector("v_mul_f32_e64 v0, v1, v2 mul:4", &[f(1.5), f(2.0)]), f(12.0));
    assert_eq!(vector("v_add_f32_e64 v0, v1, v2 clamp", &[f(1.5), f(2.0)]), f(1.0));
    assert_eq!(vector("v_add_f32_e64 v0, v1, v2 clamp", &[f(f32::NAN), f(2.0)]), 0);
    assert_eq!(vector("v_max_f32_e32 v0, v1, v2", &[f(-0.0), f(0.0)]), f(0.0));
    assert_eq!(vector("v_fmamk_f32 v0, v1, 0x40000000, v2", &[f(3.0), f(1.0)]), f(7.0));
    assert_eq!(
        vector("v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]", &[f(1.0), f(-2.0)]),
        0xc038_beef
    );
}

#[test]
fn pairs_and_halves() {
    let f = f32::to_bits;
    let wave = after(
        "v_pk_fma_f32 v[0:1], v[1:2], v[3:4], 1.0 op_sel:[1,0,0]",
        &[f(2.0), f(3.0), f(4.0), f(5.0)],
        &[],
        |_| {},
    );
    let mut wave = wave;
    // Both read the first operand's high word.
    assert_eq!((wave.arriving(0)[0], wave.arriving(1)[0]), (f(13.0), f(16.0)));
    let high = "v_pk_add_u16 v0, v1, v2 op_sel:[0,1] op_sel_hi:[0,1]";
    assert_eq!(vector(high, &[0x0001_0002, 0x0030_0040]), 0x0032_0032);
    // 1.5 - 0.5 and 2 + 1 in f16.
    assert_eq!(
        vector("v_pk_add_f16 v0, v1, v2 neg_lo:[0,1]", &[0x4000_3e00, 0x3c00_3800]),
        0x4200_3c00
    );
}

#[test]
fn wide_sums_and_masks() {
    let mut wave = after(
        "v_mad_u64_u32 v[0:1], s[8:9], v1, v2, v[3:4]",
        &[u32::MAX, u32::MAX, u32::MAX, u32::MAX],
        &[],
        |_| {},
    );
    // (2^32 - 1)^2 + 2^64 - 1 = 2^64 + (2^64 - 2^33 + 1) - 1.
    assert_eq!((wave.arriving(0)[0], wave.arriving(1)[0]), (0, 0xffff_fffe));
    assert_eq!(wave.scalars[8], u32::MAX);
    let half = |wave: &mut Wave| wave.scalars[usize::from(EXEC)] = 0xffff;
    let wave = after("v_cmp_lt_u32_e32 vcc, v1, v2", &[1, 2], &[], half);
    assert_eq!(wave.scalars[usize::from(VCC)], 0xffff);
    let mut wave = after("v_mov_b32_e32 v0, v1", &[7], &[], half);
    assert_eq!((wave.arriving(0)[15], wave.arriving(0)[16]), (7, 0xdead_beef));
}

#[test]
fn scalars() {
    assert_eq!(scalar("s_bfe_i32 s0, s1, 0x40004", &[0x80]), (0xffff_fff8, true));
    assert_eq!(scalar("s_add_u32 s0, s1, s2", &[u32::MAX, 1]), (0, true));
    assert_eq!(scalar("s_add_i32 s0, s1, s2", &[0x7fff_ffff, 1]), (0x8000_0000, true));
    assert_eq!(scalar("s_lshl2_add_u32 s0, s1, s2", &[0x4000_0000, 5]), (5, true));
    assert_eq!(scalar("s_abs_i32 s0, s1", &[(-5i32) as u32]), (5, true));
    assert_eq!(scalar("s_ff1_i32_b64 s0, s[2:3]", &[0, 0, 8]), (35, false));
    assert_eq!(
        scalar("s_pack_lh_b32_b16 s0, s1, s2", &[0x1234, 0x5678_0000]),
        (0x5678_1234, false)
    );
    let wave = after("s_and_saveexec_b64 s[0:1], s[2:3]", &[], &[0, 0xff, 0], |_| {});
    assert_eq!(
        (wave.scalars[0], wave.scalars[1], wave.active(), wave.condition),
        (u32::MAX, u32::MAX, 0xff, true)
    );
}

#[test]
fn what_has_no_meaning_is_refused_by_name() {
    let refused = |text: &str| {
        instruction(text, Target::Gfx942).err().unwrap_or_else(|| panic!("{text} passes"))
    };
    assert!(refused("v_add_u32_e64 v0, v1, v2 clamp").contains("clamp"));
    assert!(refused("v_frobnicate_b32 v0, v1").contains("mnemonic"));
    assert!(refused("v_add_f64 v[0:1], v[2:3], v4").contains("width"));
    assert!(refused("v_and_b32_e32 v0, -v1, v2").contains("sign"));
    assert!(
        refused("v_mfma_f32_4x4x4_16b_f16 a[0:3], v[0:1], v[2:3], a[0:3]").contains("mnemonic")
    );
    assert!(refused("global_load_dword v0, v[2:3], off tfe").contains("tfe"));
    assert!(
        refused("buffer_load_dword v0, v1, s[0:3], 0 idxen").contains("where none was expected")
    );
    assert!(refused("ds_read_b32 v0, v1 gds").contains("gds"));
    assert!(refused("s_setreg_imm32_b32 hwreg(HW_REG_MODE), 0").contains("operand"));
    // The dialects' conversions exist on one target only.
    assert!(refused("v_cvt_scalef32_pk_bf16_fp4 v0, v1, v2").contains("mnemonic"));
}
