// SourceText: lines of the files that debug information names.
//
// Whoever wrote a kernel may have named any file there, also one with secrets,
// and what is shown of it may be published: what does not look like a program
// is not read.
#pragma once

#include "kiln/base/export.h"

#include <string>
#include <string_view>
#include <vector>

namespace KILN_API kiln {

/// Whether a file is likely a program, by how its name ends.
bool isSource(std::string_view path);

/// The sources that the .file directives of PTX name, each once.
std::vector<std::string> namedSources(std::string_view ptx);

/// The lines of a program's source, fit for a terminal; none where there is no
/// such file, or no program.
const std::vector<std::string> &sourceLines(const std::string &path);

} // namespace kiln
