// layout_command: who holds which element of a tile, as tables and pictures.
#include "commands.h"
#include "console/output_file.h"

#include <kiln/language/tile/layout_figure.h>

#include <charconv>
#include <fmt/format.h>
#include <optional>

namespace kiln::cli {

namespace {

struct LayoutOptions {
  std::string kind;
  std::vector<std::string> words; ///< a shape and a type, in any order
  int swizzle = -1;               ///< bytes; -1: the widest that fits
  int panel = 0;                  ///< columns; 0: no panels
  int threads = 128;
  int vector = 1;
  bool is_transposed = false;
  std::string svg;

  // Read from the words.
  int rows = 0, columns = 0;
  std::optional<Type> type;
};

/// A kind of layout in registers.
struct Kind {
  const char *name;
  bool has_type;
  RegisterLayout (*make)(const LayoutOptions &options);
};

} // namespace

static const Kind kinds[] = {
    {"accumulator", false,
     [](const LayoutOptions &o) {
       return RegisterLayout::accumulator(o.rows, o.columns);
     }},
    {"operand-a", true,
     [](const LayoutOptions &o) {
       return RegisterLayout::wgmma_operand(*o.type, o.rows, o.columns);
     }},
    {"mma-accumulator", false,
     [](const LayoutOptions &o) {
       return RegisterLayout::mma_accumulator(o.rows, o.columns);
     }},
    {"mma-operand-a", true,
     [](const LayoutOptions &o) {
       return RegisterLayout::mma_operand_a(*o.type, o.rows, o.columns);
     }},
    {"mma-operand-b", true,
     [](const LayoutOptions &o) {
       return RegisterLayout::mma_operand_b(*o.type, o.rows, o.columns);
     }},
    {"row-per-thread", false,
     [](const LayoutOptions &o) {
       return RegisterLayout::row_per_thread(o.rows, o.columns);
     }},
    {"strided", false,
     [](const LayoutOptions &o) {
       return RegisterLayout::strided(o.threads, o.rows, o.columns, o.vector);
     }},
};

/// "64x16" as its two sides.
static bool parse_shape(std::string_view word, int &rows, int &columns) {
  std::size_t middle = word.find('x');
  if (middle == std::string_view::npos)
    return false;
  auto parse = [](std::string_view text, int &side) {
    const char *begin = text.data(), *end = begin + text.size();
    auto [stop, error] = std::from_chars(begin, end, side);
    return error == std::errc() && stop == end && side > 0;
  };
  return parse(word.substr(0, middle), rows) &&
         parse(word.substr(middle + 1), columns);
}

/// Fill in shape and type; the kind says whether there is one.
static void read_words(LayoutOptions &options, bool has_type) {
  for (const std::string &word : options.words) {
    if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      if (!parse_shape(word, options.rows, options.columns))
        throw UserError(fmt::format("'{}' is not a valid shape; write rows x "
                                    "columns, for example 64x16",
                                    word));
    } else {
      options.type = parse_type(word);
    }
  }
  if (!options.rows)
    throw UserError(fmt::format("layout {} needs a shape, for example 64x16",
                                options.kind));
  if (has_type && !options.type)
    throw UserError(fmt::format(
        "layout {} depends on the element type; add one, for example f16",
        options.kind));
  if (!has_type && options.type)
    throw UserError(
        fmt::format("layout {} is the same for every type; leave out {}",
                    options.kind, name(*options.type)));
}

static TileLayout shared_layout(const LayoutOptions &options) {
  TileLayout layout =
      TileLayout::of(*options.type, options.rows, options.columns);
  layout.panel = options.panel;
  if (options.panel && options.swizzle < 0)
    layout.swizzle = Swizzle::none;
  if (options.swizzle < 0)
    return layout;
  for (Swizzle swizzle :
       {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128})
    if (static_cast<int>(swizzle) == options.swizzle) {
      layout.swizzle = swizzle;
      return layout;
    }
  throw UserError(
      fmt::format("there is no swizzle of {} bytes; use 0, 32, 64 or 128",
                  options.swizzle));
}

template <typename Layout>
static void show(const Layout &layout, const std::string &svg) {
  check_output("--svg", svg);
  std::string table = layout_table(layout);
  if (!svg.empty())
    write_output(svg, layout_svg(layout));
  write_output("", table);
}

static ExitStatus run_layout(LayoutOptions &options) {
  if (options.kind == "shared") {
    read_words(options, /*has_type=*/true);
    show(shared_layout(options), options.svg);
    return ExitStatus::ok;
  }
  if (options.kind == "tensor-memory") {
    read_words(options, /*has_type=*/true);
    show(TensorLayout{*options.type, options.rows, options.columns},
         options.svg);
    return ExitStatus::ok;
  }
  std::string names = "shared, tensor-memory";
  for (const Kind &kind : kinds) {
    names += fmt::format(", {}", kind.name);
    if (options.kind != kind.name)
      continue;
    read_words(options, kind.has_type);
    RegisterLayout layout = kind.make(options);
    show(options.is_transposed ? layout.transpose() : layout, options.svg);
    return ExitStatus::ok;
  }
  throw UserError(fmt::format("'{}' is not a valid layout; there are {}",
                              options.kind, names));
}

void add_layout_command(Command app, Action &action) {
  Command command = app.add_subcommand(
      "layout", "where the elements of a tile are, as tables and as SVG");
  auto options = std::make_shared<LayoutOptions>();
  command
      .add_option(
          "kind", options->kind,
          "shared, tensor-memory, accumulator, operand-a, mma-accumulator, "
          "mma-operand-a, mma-operand-b, row-per-thread or strided")
      .required();
  command
      .add_option("shape", options->words,
                  "rows x columns, and the element type where it matters: "
                  "64x16 f16")
      .required()
      .expected(1, 2);
  command.add_option("--swizzle", options->swizzle,
                     "of shared: 0, 32, 64 or 128 bytes; the widest that fits "
                     "if not given");
  command.add_option("--panel", options->panel,
                     "of shared without a swizzle: columns of a panel");
  command.add_option("--threads", options->threads, "of strided")
      .capture_default_str();
  command.add_option("--vector", options->vector, "of strided: elements")
      .capture_default_str();
  command.add_flag("--transpose", options->is_transposed,
                   "of layouts in registers: seen as columns x rows");
  command.add_option("--svg", options->svg, "draw it to that file too");
  command.callback([&action, options] {
    action = [options] { return run_layout(*options); };
  });
}

} // namespace kiln::cli
