# KilnFmt: fmt, compiled once, as one target: kiln_fmt.
#
# A file that formats one string costs 3.6 s to compile against the header-only
# fmt and 0.6 s against a compiled one. The shared library of the system is used
# where Kiln is built for the machine it runs on; an executable that carries
# everything, a build for another processor, and one with another C++ library
# (KILN_OWN_FMT) compile fmt's source themselves.
find_package(fmt REQUIRED)

if(NOT KILN_STATIC_LLVM AND NOT CMAKE_CROSSCOMPILING AND NOT KILN_OWN_FMT)
  add_library(kiln_fmt INTERFACE)
  target_link_libraries(kiln_fmt INTERFACE fmt::fmt)
  return()
endif()

# Distributions ship the headers and a shared library, and no source: this file
# is what src/format.cc of fmt 9 and 10 comes to.
set(source ${PROJECT_BINARY_DIR}/kiln_fmt.cpp)
file(CONFIGURE OUTPUT ${source} CONTENT [[
#include <fmt/format-inl.h>
FMT_BEGIN_NAMESPACE
namespace detail {
template FMT_API auto dragonbox::to_decimal(float) noexcept
    -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double) noexcept
    -> dragonbox::decimal_fp<double>;
template FMT_API locale_ref::locale_ref(const std::locale &);
template FMT_API auto locale_ref::get<std::locale>() const -> std::locale;
template FMT_API auto thousands_sep_impl(locale_ref)
    -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
template FMT_API void buffer<char>::append(const char *, const char *);
template FMT_API void vformat_to(buffer<char> &, basic_string_view<char>,
                                 basic_format_args<buffer_context<char>>,
                                 locale_ref);
} // namespace detail
FMT_END_NAMESPACE
]])
add_library(kiln_fmt STATIC ${source})
target_include_directories(kiln_fmt SYSTEM PUBLIC
  $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
set_target_properties(kiln_fmt PROPERTIES
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
