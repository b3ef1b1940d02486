# KilnPage: the report page's style and script, as a source file of kiln_sim.
#
# They are files of their own, so that editors and linters know them. A page has
# them inline, and a policy that names their SHA-256: no other script runs, also
# none that somebody hid in the name of a kernel.

# The SHA-256 of a text in base64, as Content-Security-Policy has it.
function(kiln_sha256_base64 result text)
  set(digits "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(SHA256 hex "${text}")
  string(APPEND hex "00") # 33 bytes: 11 groups, of whose last byte nothing shows
  set(base64 "")
  foreach(group RANGE 10)
    math(EXPR at "6 * ${group}")
    string(SUBSTRING "${hex}" ${at} 6 bytes)
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${bytes} >> ${shift}) & 63")
      string(SUBSTRING "${digits}" ${digit} 1 letter)
      string(APPEND base64 "${letter}")
    endforeach()
  endforeach()
  string(SUBSTRING "${base64}" 0 43 base64)
  set(${result} "${base64}=" PARENT_SCOPE)
endfunction()

# Text of files, one behind the other; a change of one configures again.
function(kiln_read_files result)
  set(all "")
  foreach(path IN LISTS ARGN)
    file(READ "${path}" text)
    string(APPEND all "${text}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  endforeach()
  set(${result} "${all}" PARENT_SCOPE)
endfunction()

# Sources of the page for `target`, from `folder`.
function(kiln_page target folder)
  kiln_read_files(KILN_PAGE_STYLE ${folder}/page.css)
  # What the others use comes first, what starts comes last.
  kiln_read_files(KILN_PAGE_SCRIPT ${folder}/dom.js ${folder}/data.js
    ${folder}/timeline.js ${folder}/waits.js ${folder}/memory.js
    ${folder}/barriers.js ${folder}/source.js ${folder}/finding.js
    ${folder}/launch.js ${folder}/page.js)
  kiln_sha256_base64(KILN_PAGE_STYLE_HASH "${KILN_PAGE_STYLE}")
  kiln_sha256_base64(KILN_PAGE_SCRIPT_HASH "${KILN_PAGE_SCRIPT}")
  set(output ${CMAKE_CURRENT_BINARY_DIR}/page_assets.cpp)
  configure_file(${folder}/assets.cpp.in ${output} @ONLY)
  target_sources(${target} PRIVATE ${output})
endfunction()
