// kiln_c.h: Kiln for other languages: devices, buffers, modules, launches in
// several interleavings, reports, and kernels, in C.
//
//     kiln_device *device = NULL;
//     kiln_error *error = kiln_device_open("sim", "seed=7", &device);
//     if (error) {
//       puts(kiln_error_message(error));
//       kiln_error_free(error);
//     }
//
// Every function that can fail returns NULL or an error, which is the caller's
// to free; what it was to make is then left as it was. No exception crosses
// this interface. Handles are freed by the function of their kind, which takes
// NULL too; whatever was made from a handle keeps what it needs of it. Texts
// that are returned live as long as the handle they were asked of.
//
// Structures begin with their size, so that later versions can add to them:
// set `bytes` to sizeof of what you were compiled with. A library of a later
// version takes the smaller structure of an earlier one.
#pragma once

#include <kiln/c/kiln_options.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_C_API __attribute__((visibility("default")))

/// Grows with every change of this file; kiln_c_version() is the library's.
#define KILN_C_VERSION 4
KILN_C_API int kiln_c_version(void);
/// "0.1.0"
KILN_C_API const char *kiln_version(void);

typedef struct kiln_error kiln_error;
typedef struct kiln_device kiln_device;
typedef struct kiln_buffer kiln_buffer;
typedef struct kiln_module kiln_module;
typedef struct kiln_result kiln_result;
typedef struct kiln_kernel kiln_kernel;

/// A sentence, ready to be shown; and the exit status of commands for that kind
/// of error: 2 a finding, 3 refused, 4 the machine, 5 a defect of Kiln's own.
KILN_C_API const char *kiln_error_message(const kiln_error *error);
KILN_C_API int kiln_error_code(const kiln_error *error);
KILN_C_API void kiln_error_free(kiln_error *error);

/// `id`: auto, sim, cuda, cuda:1. `options` of the checks, "key=value" with
/// commas, or NULL: the members of kiln_options by their names.
KILN_C_API kiln_error *kiln_device_open(const char *id, const char *options,
                                        kiln_device **device);
/// The same with the structure; NULL: nobody says anything.
KILN_C_API kiln_error *kiln_device_open_with(const char *id,
                                             const kiln_options *options,
                                             kiln_device **device);
/// A simulator of the GPU that the options name, or else of one that runs this
/// PTX; NULL options: nobody says anything.
KILN_C_API kiln_error *kiln_device_open_for(const char *ptx,
                                            const kiln_options *options,
                                            kiln_device **device);
/// "sim (NVIDIA H200)"
KILN_C_API const char *kiln_device_name(const kiln_device *device);
KILN_C_API kiln_error *kiln_device_synchronize(kiln_device *device);
/// 1: launches of a simulator end, with what they have found and the finding
/// `interrupted`, until it is set to 0 again. From any thread, and from signal
/// handlers.
KILN_C_API void kiln_device_set_interrupted(kiln_device *device,
                                            int is_interrupted);
/// 1: what kernels print is in kiln_result_printed alone; 0: on stdout too.
KILN_C_API void kiln_device_set_quiet(kiln_device *device, int is_quiet);
/// CTAs that are done, of how many, of the launches that a simulator is at, in
/// all interleavings; 0 of 0: it has not begun. From any thread.
KILN_C_API void kiln_device_progress(const kiln_device *device, uint64_t *done,
                                     uint64_t *total);
KILN_C_API void kiln_device_free(kiln_device *device);

KILN_C_API kiln_error *kiln_buffer_allocate(kiln_device *device, size_t bytes,
                                            kiln_buffer **buffer);
/// Memory of the host that kernels use at its own address, without a copy.
KILN_C_API kiln_error *kiln_buffer_share(kiln_device *device, void *data,
                                         size_t bytes, kiln_buffer **buffer);
/// Whether this process may read, or with `is_written` write, all these bytes of
/// its memory, as far as the system tells: for an address from a stranger.
KILN_C_API int kiln_memory_is_mapped(const void *data, size_t bytes,
                                     int is_written);
/// Memory of the device that somebody else owns, at its address there.
KILN_C_API kiln_error *kiln_buffer_wrap(kiln_device *device, uint64_t address,
                                        size_t bytes, kiln_buffer **buffer);
/// A part of a buffer, which it keeps.
KILN_C_API kiln_error *kiln_buffer_slice(const kiln_buffer *buffer,
                                         size_t offset, size_t bytes,
                                         kiln_buffer **slice);
KILN_C_API uint64_t kiln_buffer_address(const kiln_buffer *buffer);
KILN_C_API size_t kiln_buffer_bytes(const kiln_buffer *buffer);
KILN_C_API kiln_error *kiln_buffer_write(kiln_buffer *buffer, size_t offset,
                                         const void *data, size_t bytes);
KILN_C_API kiln_error *kiln_buffer_read(const kiln_buffer *buffer,
                                        size_t offset, void *data,
                                        size_t bytes);
/// What findings shall call it.
KILN_C_API kiln_error *kiln_buffer_set_name(kiln_buffer *buffer,
                                            const char *name);
KILN_C_API void kiln_buffer_free(kiln_buffer *buffer);

/// Several texts are linked.
KILN_C_API kiln_error *kiln_module_load(kiln_device *device,
                                        const char *const *ptx, size_t count,
                                        kiln_module **module);
/// PTX, or a fat binary of nvcc, of which the PTX for this device is taken.
KILN_C_API kiln_error *kiln_module_load_image(kiln_device *device,
                                              const void *image, size_t bytes,
                                              kiln_module **module);
KILN_C_API size_t kiln_module_entry_count(const kiln_module *module);
/// NULL where there are not so many.
KILN_C_API const char *kiln_module_entry_name(const kiln_module *module,
                                              size_t index);
/// Parameters of an entry and, where `bytes` is not NULL, the size of each of
/// the first `capacity`.
KILN_C_API kiln_error *kiln_module_parameters(const kiln_module *module,
                                              const char *entry, size_t *count,
                                              uint32_t *bytes, size_t capacity);
/// What the text of an entry tells of a parameter; texts live as long as the
/// module.
typedef struct kiln_parameter {
  size_t bytes; ///< sizeof(kiln_parameter)
  const char *name;
  const char *kind; ///< "pointer", "number", "tensor_map", "struct"
  /// Of a number, or of the elements behind a pointer: "f32"; "" where the text
  /// does not tell.
  const char *type;
  uint32_t size; ///< bytes of the parameter
} kiln_parameter;
KILN_C_API kiln_error *kiln_module_parameter(const kiln_module *module,
                                             const char *entry, size_t index,
                                             kiln_parameter *parameter);
KILN_C_API kiln_error *kiln_module_variable(const kiln_module *module,
                                            const char *name, uint64_t *address,
                                            size_t *bytes);
/// Registers per thread: ptxas' count where one is found, else a bound.
KILN_C_API kiln_error *kiln_module_registers(const kiln_module *module,
                                             const char *entry, int *count);
KILN_C_API void kiln_module_free(kiln_module *module);

/// What cuTensorMapEncodeTiled takes, with its order: the innermost dimension
/// comes first.
typedef struct kiln_tensor_map {
  size_t bytes;     ///< sizeof(kiln_tensor_map)
  const char *type; ///< of elements: "f16", "e4m3"
  uint64_t address; ///< of the first element, on the device
  uint32_t rank;    ///< from 1 to 5
  uint64_t dims[5];
  uint64_t strides_bytes[5]; ///< of dims[1] and on
  uint32_t box[5];
  uint32_t element_strides[5]; ///< 0 counts as 1
  uint32_t swizzle_bytes;      ///< 0, 32, 64 or 128
  uint32_t interleave_bytes;   ///< 0, 16 or 32
  uint32_t l2_promotion_bytes; ///< 0, 64, 128 or 256
  uint32_t fills_with_nan;     ///< what lies outside reads as NaN, not 0
} kiln_tensor_map;
/// The 128 bytes that kernels of this device read as the map.
KILN_C_API kiln_error *kiln_tensor_map_encode(const kiln_device *device,
                                              const kiln_tensor_map *map,
                                              void *encoded);

/// A launch of an entry; sizes of 0 count as 1.
typedef struct kiln_launch {
  size_t bytes; ///< sizeof(kiln_launch)
  const kiln_module *module;
  const char *entry;
  uint32_t grid[3], block[3], cluster[3];
  uint32_t dynamic_smem_bytes;
  int is_cooperative;
  const void *const *parameters; ///< a pointer to each, of its size
  // Since version 2.
  int is_dependent; ///< it may begin before the launch ahead of it has ended
} kiln_launch;
/// Launch in the interleavings that the device's options ask for: unless they
/// say otherwise, eager, lazy and a random one. Memory is then as the first one
/// left it. What was found is in the result, and not an error of the call.
KILN_C_API kiln_error *kiln_device_launch(kiln_device *device,
                                          const kiln_launch *launch,
                                          kiln_result **result);
/// The same with several launches, one after the other in each interleaving,
/// and with options of their own; NULL: the device's. What is said of the
/// device (gpu, sms) was said when it was opened.
KILN_C_API kiln_error *kiln_explore(kiln_device *device,
                                    const kiln_launch *const *launches,
                                    size_t count, const kiln_options *options,
                                    kiln_result **result);

/// Run a launch file on a simulator, as `kiln sim` does, and hold the results
/// against what it expects. A NULL `ptx`: the PTX that the file names; NULL
/// options: nobody says anything.
KILN_C_API kiln_error *kiln_launch_file_run(const char *path, const char *ptx,
                                            const kiln_options *options,
                                            kiln_result **result);
/// Write a first launch file of the PTX or the saved kernel, to be filled in.
KILN_C_API kiln_error *kiln_launch_file_init(const char *ptx, const char *path);

/// A finding; texts live as long as the result.
typedef struct kiln_finding {
  size_t bytes; ///< sizeof(kiln_finding)
  const char *id, *message;
  int grade;        ///< 0 note, 1 warning, 2 error
  const char *file; ///< "" where it is not known
  unsigned line;
  int ptx_line;
  // Since version 2.
  const char *kernel;        ///< "" where it is of no single kernel
  const char *interleavings; ///< that show it: "eager, lazy"
  const char *text;          ///< all of it, as `kiln sim` prints it
  uint64_t count;            ///< how often it was found at these places
  int thread;                ///< in its CTA; -1: none
  int has_other;             ///< the access that it collides with:
  const char *other_who;     ///< "thread 32 of CTA (0, 0, 0)"
  const char *other_file;
  unsigned other_line;
  int other_ptx_line;
} kiln_finding;
/// Whether no finding is an error.
KILN_C_API int kiln_result_is_ok(const kiln_result *result);
/// Whether no finding ended a launch.
KILN_C_API int kiln_result_is_finished(const kiln_result *result);
/// Of all launches and interleavings together.
KILN_C_API double kiln_result_time_us(const kiln_result *result);
KILN_C_API uint64_t kiln_result_instructions(const kiln_result *result);
KILN_C_API size_t kiln_result_finding_count(const kiln_result *result);
KILN_C_API kiln_error *kiln_result_finding(const kiln_result *result,
                                           size_t index, kiln_finding *finding);
/// What the kernels printed in the first interleaving.
KILN_C_API const char *kiln_result_printed(const kiln_result *result);
/// The report, as docs/report.schema.json has it.
KILN_C_API const char *kiln_result_json(const kiln_result *result);
/// The report as "json", "html" (a page, with details where the option detail is
/// on), "sarif" (2.1.0), "junit" (XML) or "text"; or, of launches whose options
/// name a timeline, "timeline" for Perfetto, or "timeline-table"; of launches
/// whose options name a profile, where "-" asks for no file, "profile"
/// (docs/profile.schema.json), "profile-table", "speedscope" or "roofline" (SVG).
KILN_C_API kiln_error *kiln_result_format(kiln_result *result,
                                          const char *format,
                                          const char **text);
/// The report into a file: as a page where its name ends in .html, as SARIF where
/// it ends in .sarif, as JUnit XML where it ends in .xml, as text where it ends
/// in .txt, else as JSON.
KILN_C_API kiln_error *kiln_result_save(const kiln_result *result,
                                        const char *path);
KILN_C_API void kiln_result_free(kiln_result *result);

/// What an id of a finding means, as `kiln explain` says it; texts live for
/// ever.
typedef struct kiln_explanation {
  size_t bytes; ///< sizeof(kiln_explanation)
  const char *id;
  const char *cause;  ///< what happened, and what hardware makes of it
  const char *broken; ///< the smallest kernel text that does it
  const char *repair;
  int grade;       ///< unless --allow or --warn names it
  int ends_launch; ///< likewise
} kiln_explanation;
KILN_C_API kiln_error *kiln_explain(const char *id,
                                    kiln_explanation *explanation);
KILN_C_API size_t kiln_explanation_count(void);
/// In alphabetical order; NULL where there are not so many.
KILN_C_API const char *kiln_explanation_id(size_t index);

/// An option of the checks (docs/options.md); texts live for ever.
typedef struct kiln_option {
  size_t bytes;         ///< sizeof(kiln_option)
  const char *name;     ///< "max-instructions"
  const char *key;      ///< "max_instructions", the member of kiln_options
  const char *accepted; ///< in words
  const char *fallback; ///< what it is when nobody says anything, in words
  const char *help;
} kiln_option;
KILN_C_API size_t kiln_option_count(void);
KILN_C_API kiln_error *kiln_option_at(size_t index, kiln_option *option);

/// A saved kernel: a file that Kernel::save or `kiln emit` wrote.
KILN_C_API kiln_error *kiln_kernel_load(const char *path, kiln_kernel **kernel);
KILN_C_API kiln_error *kiln_kernel_save(const kiln_kernel *kernel,
                                        const char *path);
/// A kernel for a device, or where that is NULL for an H200: "gemm", "attention"
/// or "grouped-gemm", as GemmProblem and GemmSchedule, and those of the other
/// two, read their texts; a NULL schedule: the one Kiln picks. Needs libkiln, the
/// compiler; it is an error where that is missing.
KILN_C_API kiln_error *kiln_kernel_build(const kiln_device *device,
                                         const char *kind, const char *problem,
                                         const char *schedule,
                                         kiln_kernel **kernel);
/// Let kiln_kernel_build use the libkiln that lies there, instead of the one that
/// the system finds.
KILN_C_API kiln_error *kiln_compiler_load(const char *path);
/// A GEMM for an H200.
KILN_C_API kiln_error *kiln_gemm_build(const char *problem,
                                       const char *schedule,
                                       kiln_kernel **kernel);
KILN_C_API const char *kiln_kernel_name(const kiln_kernel *kernel);
KILN_C_API const char *kiln_kernel_ptx(const kiln_kernel *kernel);
/// The text that kiln_kernel_save writes, JSON: arguments, shapes, the grid.
KILN_C_API kiln_error *kiln_kernel_json(kiln_kernel *kernel, const char **text);
KILN_C_API void kiln_kernel_free(kiln_kernel *kernel);

/// A buffer, or where that is NULL a scalar: its type ("f32", "i32") and bits.
typedef struct kiln_argument {
  const kiln_buffer *buffer;
  const char *type;
  uint64_t bits;
} kiln_argument;
KILN_C_API kiln_error *kiln_kernel_launch(kiln_device *device,
                                          const kiln_kernel *kernel,
                                          const kiln_argument *arguments,
                                          size_t count, kiln_result **result);
/// The same with options of its own, as kiln_explore has them.
KILN_C_API kiln_error *kiln_kernel_explore(kiln_device *device,
                                           const kiln_kernel *kernel,
                                           const kiln_argument *arguments,
                                           size_t count,
                                           const kiln_options *options,
                                           kiln_result **result);
/// Put a launch into a stream of the device, a CUstream, and return; unchecked.
/// Buffers are those of the caller, and stay until it has ended.
KILN_C_API kiln_error *kiln_kernel_enqueue(kiln_device *device,
                                           const kiln_kernel *kernel,
                                           const kiln_argument *arguments,
                                           size_t count, void *stream);

/// Launches that are stopped, looked at, and run forwards and backwards
/// (docs/debug.md). `ptx_path`: the PTX, or NULL where the launch file names it.
/// The calling process is forked.
typedef struct kiln_debugger kiln_debugger;
KILN_C_API kiln_error *kiln_debugger_open(const char *ptx_path,
                                          const char *launch_path,
                                          const kiln_options *options,
                                          kiln_debugger **debugger);
/// The answer to a command, a line of text or JSON, is an object of JSON: it
/// has "ok", and where that is false "error". It lives until the next one.
KILN_C_API kiln_error *kiln_debugger_request(kiln_debugger *debugger,
                                             const char *command,
                                             const char **answer);
/// The last answer as the console shows it.
KILN_C_API const char *kiln_debugger_text(const kiln_debugger *debugger);
/// The request that is under way stops soon; from any thread, and from signal
/// handlers.
KILN_C_API void kiln_debugger_interrupt(kiln_debugger *debugger);
KILN_C_API void kiln_debugger_free(kiln_debugger *debugger);

#ifdef __cplusplus
}
#endif
