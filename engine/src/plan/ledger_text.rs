//! The byte ledger as text.

use std::fmt;

use super::table::{Table, gib3, grouped};
use crate::model::v41::Ledger;
use crate::model::v41::names::Part;

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&[
            "checkpoint",
            "tensors",
            "payload B",
            "scale B",
            "total B",
            "payload GiB",
        ]);
        for line in &self.lines {
            table.row(vec![
                label(line.part).to_owned(),
                grouped(line.tensors),
                grouped(line.payload_bytes),
                grouped(line.scale_bytes),
                grouped(line.payload_bytes + line.scale_bytes),
                gib3(line.payload_bytes),
            ]);
        }
        let (total, scales) = (self.total_bytes, self.formats.scales);
        table.row(vec![
            "total".to_owned(),
            grouped(self.tensors),
            grouped(total - scales),
            grouped(scales),
            grouped(total),
            gib3(total - scales),
        ]);
        writeln!(f, "{table}")?;
        writeln!(f, "  total {} B = {} GiB\n", grouped(total), gib3(total))?;
        writeln!(f, "{}", self.formats_table())?;
        writeln!(f, "{}", self.parameters_table())?;
        write!(f, "{}", self.caches_table())
    }
}

impl Ledger {
    fn formats_table(&self) -> Table {
        let mut table = Table::new(&["by format", "B", "GiB"]);
        let formats = &self.formats;
        for (name, bytes) in [
            ("FP4 experts", formats.fp4),
            ("FP8 Engram tables", formats.engram_fp8),
            ("E8M0 scales", formats.scales),
            ("other FP8", formats.fp8),
            ("BF16 and F32", formats.bf16 + formats.f32),
        ] {
            table.row(vec![name.to_owned(), grouped(bytes), gib3(bytes)]);
        }
        table
    }

    fn parameters_table(&self) -> Table {
        let mut table = Table::new(&["parameters", "exact", "billions"]);
        let parameters = &self.parameters;
        for (name, count) in [
            ("total", parameters.total),
            ("backbone", parameters.backbone),
            ("Engram tables", parameters.engram_tables),
            ("draft stages", parameters.draft),
            ("active per prompt token", parameters.active_per_prompt_token),
            ("active per output token", parameters.active_per_output_token),
        ] {
            let billions = format!("{:.2}", count as f64 / 1e9);
            table.row(vec![name.to_owned(), grouped(count), billions]);
        }
        table
    }

    fn caches_table(&self) -> Table {
        let mut table = Table::new(&["caches", "B"]);
        let caches = &self.caches;
        let per_token = caches.bytes_per_token();
        for (name, bytes) in [
            ("compressed entry", caches.latent_entry_bytes.to_string()),
            ("index key", caches.index_entry_bytes.to_string()),
            ("both, per token", format!("{per_token}")),
            ("windows, per sequence", grouped(caches.window_bytes())),
            ("open groups, per sequence", grouped(caches.open_group_bytes * caches.gated_owners)),
        ] {
            table.row(vec![name.to_owned(), bytes]);
        }
        table
    }
}

/// A part as the ledger names it.
fn label(part: Part) -> &'static str {
    match part {
        Part::BackboneExperts => "backbone routed experts",
        Part::DraftExperts => "DSpark routed experts",
        Part::EngramTables => "Engram tables",
        Part::EngramProjection => "Engram wkv",
        Part::EngramGate => "Engram q_weight, k_weight",
        Part::QueryDown => "attn wq_a",
        Part::QueryUp => "attn wq_b",
        Part::Latent => "attn wkv",
        Part::OutputDown => "attn wo_a",
        Part::OutputUp => "attn wo_b",
        Part::SharedExperts => "shared experts",
        Part::IndexQuery => "indexer wq_b",
        Part::IndexWeights => "indexer weights_proj",
        Part::IndexKey => "indexer wk",
        Part::IndexKeyNorm => "indexer k_norm",
        Part::CompressorLatent => "compressor wkv",
        Part::CompressorGate => "compressor wgate",
        Part::CompressorNorm => "compressor norm",
        Part::Router => "router gate.weight",
        Part::RouterBiases => "router biases",
        Part::HyperConnections => "mHC tensors",
        Part::Sinks => "attention sinks",
        Part::LayerNorms => "layer norms (attn, ffn, q, kv)",
        Part::Embedding => "embed",
        Part::Head => "head",
        Part::FinalNorm => "final norm",
        Part::DraftDense => "DSpark non-expert tensors",
        Part::Vision => "vision",
    }
}
