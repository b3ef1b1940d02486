// kiln_options.h: what checks can be told, as a structure. It is made from the
// table of kiln/check/options.h.
//
//     kiln_options options = KILN_OPTIONS_INIT;
//     options.interleaving = "random";
//     options.seed = 7;
//
// A member that is left as KILN_OPTIONS_INIT has it says nothing. Later versions
// add members at the end.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct kiln_options {
  size_t bytes; ///< sizeof(kiln_options)
  /// Run each launch in this interleaving: asynchronous operations take effect
  /// at once (eager), as late as the program allows (lazy), or at moments drawn
  /// from the seed (random); all: in eager, lazy and random ones. Takes eager,
  /// lazy, random or all; default: all.
  const char *interleaving;
  /// Run each launch in N interleavings; those after eager and lazy are random.
  /// Takes a whole number from 1 to 1000000; default: 3, or 1 where an
  /// interleaving is named.
  uint64_t interleavings;
  /// The seed for random interleavings; each further one takes the next seed.
  /// Takes a whole number from 0 on; default: 0.
  uint64_t seed;
  /// Look for defects; off: run faster, and only what would trap on a GPU is
  /// found. Takes on or off; default: on.
  const char *checks;
  /// Refuse PTX that uses what its .target or .version does not have, as ptxas
  /// does; off: run it anyway. Takes on or off; default: on.
  const char *target_check;
  /// Simulate with N host threads. Takes a whole number from 0 to 1024;
  /// default: 0: all cores.
  uint64_t threads;
  /// Simulate this GPU, such as h200 or rtx5090. Takes a name that `kiln
  /// devices --all` lists; default: what the PTX needs.
  const char *gpu;
  /// Simulate a GPU with N multiprocessors. Takes a whole number from 0 to
  /// 4096; default: 0: as the GPU has.
  uint64_t sms;
  /// End a launch when a CTA has executed N warp instructions; 0: never. Takes
  /// a whole number from 0 on; default: 250000000.
  uint64_t max_instructions;
  /// End a launch after so many seconds, and refuse PTX whose reading takes as
  /// long; 0: never. Takes a number of seconds from 0 on; default: 0.
  double time_limit;
  /// Hide findings with this ID; several with commas. Takes an id that `kiln
  /// explain` lists; default: none.
  const char *allow;
  /// Downgrade errors with this ID to warnings; several with commas. Takes an
  /// id that `kiln explain` lists; default: none.
  const char *warn;
  /// Write launches, findings and the verdict to this file: as a page where its
  /// name ends in .html, as SARIF 2.1.0 where it ends in .sarif, as JUnit XML
  /// where it ends in .xml, as text where it ends in .txt, else as JSON. Takes
  /// a file name; default: none.
  const char *report;
  /// Write who did what when to this file, for Perfetto; -: print the first CTA
  /// as a table. Takes a file name, or -; default: none.
  const char *timeline;
  /// Print where the time of the simulation went. Takes on or off; default:
  /// off.
  int64_t stats;
  /// Check only kernels whose name matches; the others run unchecked. Takes a
  /// regular expression; default: all.
  const char *kernel;
  /// Check only the launch of this number; several with commas. Takes a whole
  /// number from 1 on; default: all.
  const char *launch;
  /// Write the chosen launches to this folder: PTX, launch file and memory, for
  /// `kiln sim FOLDER/NAME.json`. Takes a folder; default: none.
  const char *capture;
  /// End a launch that takes the memory of this process beyond BYTES; 0: never.
  /// Takes a number of bytes from 0 on, with K, M or G after it for units of
  /// 1024; default: 0.
  const char *memory_limit;
  /// Keep N findings of a launch, errors first, and count the rest; 0: keep
  /// all. Takes a whole number from 0 on; default: 1000.
  uint64_t max_findings;
  /// Record what a report page shows of a launch besides its findings:
  /// executions of each line, the timeline, mbarriers, shared memory. Takes on
  /// or off; default: on where --report names a page (.html) or JSON.
  const char *detail;
  /// Count what each instruction costs and write it to this file: as a page for
  /// speedscope.app where its name ends in .speedscope.json, as a roofline
  /// where it ends in .svg, as a table where it ends in .txt, else as JSON; -:
  /// print the table. Takes a file name, or -; default: none.
  const char *profile;
  /// End the launch that is running after so many seconds of the program, and
  /// refuse later ones; 0: never. Takes a number of seconds from 0 on; default:
  /// 0.
  double total_time_limit;
  /// Print a table of the program's kernels at its end: launches, CTAs, warp
  /// instructions, time, findings. Takes on or off; default: off.
  int64_t summary;
  /// Print names of templates in full, not the first 60 characters of their
  /// arguments. Takes on or off; default: off.
  int64_t verbose;
  /// Accumulate MMAs as tensor cores do, bit for bit (exact), or those of 16
  /// bits and more in f32, one product after another (fast). Takes exact or
  /// fast; default: exact.
  const char *mma;
} kiln_options;

#define KILN_OPTIONS_INIT \
    { sizeof(kiln_options), NULL, UINT64_MAX, UINT64_MAX, NULL, NULL, \
    UINT64_MAX, NULL, UINT64_MAX, UINT64_MAX, -1.0, NULL, NULL, NULL, NULL, \
    -1, NULL, NULL, NULL, NULL, UINT64_MAX, NULL, NULL, -1.0, -1, -1, NULL }
