//! The list of faults.

use super::{conduct, launch::Launch, values, wrapper::Wrap};
use crate::conformance::property::Property;
use tandem_hal::Result;

/// How a fault gets in.
#[derive(Clone, Copy)]
pub enum Plant {
    /// Around the arithmetic, captured graphs included.
    Around(Advice),
    /// Around the device: its tables, packing and kernels.
    Wrap(Wrap),
}

/// What one operator does instead of its arithmetic.
pub type Advice = fn(&mut Launch<'_, '_, '_>) -> Result<()>;

/// A fault in one operator.
#[derive(Clone, Copy)]
pub struct Fault {
    /// What is wrong.
    pub name: &'static str,
    /// Where.
    pub op: &'static str,
    /// The property that names it.
    pub property: Property,
    /// How it gets in.
    pub plant: Plant,
}

const fn around(name: &'static str, op: &'static str, property: Property, advice: Advice) -> Fault {
    Fault { name, op, property, plant: Plant::Around(advice) }
}

const fn wrap(name: &'static str, op: &'static str, property: Property, how: Wrap) -> Fault {
    Fault { name, op, property, plant: Plant::Wrap(how) }
}

/// Every fault.
pub const FAULTS: &[Fault] = &[
    around("element_wrong", "gemm.mxfp8", Property::Agrees, values::element_wrong),
    around("scale_off_by_one", "quant.cast", Property::Agrees, values::scale_off_by_one),
    around("truncation", "moe.add_shared", Property::Agrees, values::truncation),
    around("tie_upward", "index.top_k", Property::Agrees, values::tie_upward),
    around("mask_off_by_one", "index.scores", Property::Agrees, values::mask_off_by_one),
    around("sink_scaled", "attn.sparse", Property::Agrees, values::sink_scaled),
    around("second_list_ignored", "attn.sparse", Property::Agrees, values::second_list_ignored),
    around("bias_in_weight", "moe.route", Property::Agrees, values::bias_in_weight),
    around("factor_twice", "moe.route", Property::Agrees, values::factor_twice),
    around("expert_shifted", "moe.gate_up", Property::Agrees, values::expert_shifted),
    around("position_off_by_one", "norm.rotate", Property::Agrees, values::position_off_by_one),
    around("store_off_by_one", "kv.store", Property::Agrees, values::store_off_by_one),
    around("hole_is_page_zero", "kv.locate", Property::Agrees, values::hole_is_page_zero),
    around("comb_transposed", "mhc.expand", Property::Agrees, values::comb_transposed),
    around("mean_is_sum", "mhc.mean", Property::Agrees, values::mean_is_sum),
    around("mask_ignored", "engram.gate", Property::Agrees, values::mask_ignored),
    around("none_is_row_zero", "engram.lookup", Property::Agrees, values::none_is_row_zero),
    around("one_draft_more", "spec.verify", Property::Agrees, values::one_draft_more),
    around("temperature_ignored", "sample.filter", Property::Agrees, values::temperature_ignored),
    around("query_scaled", "vision.attention", Property::Agrees, values::query_scaled),
    around("position_major", "vision.unfold", Property::Agrees, values::position_major),
    around("rank_lost", "comm.all_reduce", Property::Agrees, values::rank_lost),
    around("last_row_unwritten", "gemm.bf16", Property::Guards, conduct::last_row_unwritten),
    around("guard_overrun", "gemm.mxfp4", Property::Guards, conduct::guard_overrun),
    around("stale_workspace", "gemm.f32", Property::Guards, conduct::stale_workspace),
    wrap("input_overwritten", "quant.cast", Property::Guards, Wrap::InputOverwritten),
    around("unrepeatable", "gemm.f32", Property::Repeats, conduct::unrepeatable),
    around("batch_order", "gemm.grouped", Property::Rows, conduct::batch_order),
    wrap("limit_dependent", "gemm.mxfp4", Property::Rows, Wrap::LimitDependent),
    wrap("lengths_baked", "index.top_k", Property::Replay, Wrap::LengthsBaked),
    around("stride_ignored", "norm.rms", Property::Views, conduct::stride_ignored),
    around("offset_32_bits", "kv.fetch", Property::Views, conduct::offset_32_bits),
    around("stray_clamped", "rows.gather", Property::Strays, conduct::stray_clamped),
    around("stray_is_zero", "attn.sparse", Property::Strays, conduct::stray_is_zero),
    around("nan_swallowed", "norm.rms", Property::Nan, conduct::nan_swallowed),
    around("nan_spread", "norm.rms", Property::Nan, conduct::nan_spread),
    wrap("reason_missing", "gemm.bf16", Property::Table, Wrap::ReasonMissing),
    around("scratch_shared", "quant.decode", Property::Streams, conduct::scratch_shared),
    around("fused_rounds_less", "norm.rms_cast", Property::Steps, conduct::fused_rounds_less),
    wrap("pack_loses_sign", "gemm.mxfp8", Property::Pack, Wrap::PackLosesSign),
    wrap("alien_stream_taken", "gemm.bf16", Property::Misuse, Wrap::AlienStreamTaken),
    around("roundings_lean", "gemm.f32", Property::Bias, conduct::roundings_lean),
];
