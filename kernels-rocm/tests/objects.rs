//! The committed code objects: that they are what the manifest says, and within what every part has.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tandem_rocm_toolchain::{
    Compiler, Kernel, Manifest, OBJECTS, Source, TARGETS, describe, digest,
};

/// Scalar registers that may be kept in lanes of vector registers, by kernel: those of portable kernels whose arguments
/// alone take most of the hundred there are. It costs an instruction each way and no memory.
const SCALARS_IN_LANES: [(&str, u32); 6] = [
    ("attn_sparse__portable_scores", 12),
    ("attn_sparse__portable_values", 47),
    ("index_scores__portable", 10),
    ("index_top_k__portable", 12),
    ("mhc_mixes__portable", 12),
    ("spec_verify__portable", 10),
];

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn manifest() -> Manifest {
    Manifest::read(workspace()).unwrap()
}

/// The kernels of all objects, with their targets.
fn kernels(manifest: &Manifest) -> Vec<(&Kernel, &str)> {
    let of = |record: &'_ tandem_rocm_toolchain::Record| record.kernels.len();
    assert!(manifest.records.iter().all(|record| of(record) > 0), "an object without kernels");
    let records = manifest.records.iter();
    records.flat_map(|r| r.kernels.iter().map(|k| (k, r.target.as_str()))).collect()
}

#[test]
fn every_source_has_an_object_of_its_present_text() {
    let (manifest, sources) = (manifest(), Source::all(workspace()).unwrap());
    assert!(sources.len() > 50, "{} sources", sources.len());
    let mut expected = BTreeSet::new();
    for source in &sources {
        for target in source.targets() {
            let record = manifest.find(&source.name, target);
            let is_fresh = record.is_some_and(|record| record.sources == source.digest(target));
            assert!(is_fresh, "{} {target}: run 'cargo xtask objects rocm'", source.name);
            expected.insert((source.name.clone(), target.to_owned()));
        }
    }
    let recorded: BTreeSet<_> =
        manifest.records.iter().map(|r| (r.name.clone(), r.target.clone())).collect();
    assert_eq!(recorded, expected);
}

#[test]
fn the_manifest_describes_the_files() {
    let manifest = manifest();
    let mut files: BTreeSet<PathBuf> = BTreeSet::new();
    for target in TARGETS {
        let entries = fs::read_dir(workspace().join(OBJECTS).join(target)).unwrap();
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }
    for record in &manifest.records {
        let file = format!("{}.hsaco", record.name.replace('/', "."));
        let path = workspace().join(OBJECTS).join(&record.target).join(file);
        let bytes = fs::read(&path).unwrap();
        assert_eq!(digest(&bytes), record.sha256, "{}", path.display());
        assert_eq!(describe(&bytes, &record.target).unwrap(), record.kernels);
        let other = TARGETS.into_iter().find(|target| *target != record.target).unwrap();
        assert!(describe(&bytes, other).unwrap_err().contains(&record.target));
        let half = describe(&bytes[..bytes.len() / 2], &record.target);
        assert!(half.is_err(), "{}", path.display());
        assert!(files.remove(&path));
    }
    assert!(files.is_empty(), "no record has {files:?}");
}

#[test]
fn kernels_keep_within_their_parts() {
    for (kernel, target) in kernels(&manifest()) {
        let of = format!("{} {target}", kernel.name);
        assert_eq!((kernel.scratch_bytes, kernel.vgpr_spills), (0, 0), "{of}");
        let allowed = SCALARS_IN_LANES.iter().find(|(name, _)| *name == kernel.name);
        assert_eq!(kernel.sgpr_spills, allowed.map_or(0, |(_, count)| *count), "{of}");
        // A unit's registers over the waves of a block, and its local memory.
        let waves = kernel.threads.div_ceil(64).div_ceil(4);
        assert!(kernel.vgprs <= 512 / waves && kernel.occupancy >= waves, "{of}");
        let lds_bytes = if target == "gfx950" { 160 << 10 } else { 64 << 10 };
        assert!(kernel.lds_bytes <= lds_bytes, "{of}");
        if kernel.name.contains("__portable") {
            assert!(kernel.lds_bytes <= 64 << 10, "{of}");
        }
    }
}

#[test]
fn kernels_round_to_nearest_and_keep_subnormals() {
    for (kernel, target) in kernels(&manifest()) {
        assert_eq!(kernel.float_mode, 0xF0, "{} {target}", kernel.name);
    }
}

/// The same bytes from another folder, by the compiler of the record.
#[test]
fn objects_are_what_their_compiler_makes() {
    let manifest = manifest();
    let compiler = match Compiler::find(workspace()) {
        Ok(compiler) if compiler.version == manifest.compiler => compiler,
        Ok(Compiler { version, .. }) => {
            println!("SKIPPED rocm: objects are of {}, here is {version}", manifest.compiler);
            return;
        }
        Err(why) => {
            println!("SKIPPED rocm: objects are of {}, here {why}", manifest.compiler);
            return;
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let sources = Source::all(workspace()).unwrap();
    let jobs: Vec<_> =
        sources.iter().flat_map(|s| s.targets().into_iter().map(move |t| (s, t))).collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(vec![]));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((source, target)) = jobs.get(next.fetch_add(1, Relaxed)) {
                    let to = folder.path().join(format!("{target}.{}", source.file()));
                    compiler.compile(workspace(), source, target, &to).unwrap();
                    let made = digest(&fs::read(&to).unwrap());
                    if manifest.find(&source.name, target).is_none_or(|r| r.sha256 != made) {
                        wrong.lock().unwrap().push(format!("{} {target}", source.name));
                    }
                }
            });
        }
    });
    assert_eq!(wrong.into_inner().unwrap(), [""; 0]);
}
