# aliquot_symbols(TABLE OUTPUT): write TABLE (cuda.tsv or nvml.tsv) as a list for the C preprocessor:
#   X(index, symbol, base, version, per_thread, class)
# per_thread is none, ptsz or ptds. Whoever includes OUTPUT defines X first. The table is read by
# CMake itself, so that a build needs no Python.
function(aliquot_symbols table output)
  file(STRINGS "${table}" lines)
  list(POP_FRONT lines)
  set(text "/* Generated from ${table}; do not edit. */\n")
  set(index 0)
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^([^\t]+)\t([^\t]+)\t([^\t]+)\t([^\t]+)\t([^\t]+)\t")
      message(FATAL_ERROR "${table}: cannot read ${line}")
    endif()
    string(REPLACE "-" "none" per_thread "${CMAKE_MATCH_4}")
    string(APPEND text
      "X(${index}, ${CMAKE_MATCH_1}, ${CMAKE_MATCH_2}, ${CMAKE_MATCH_3}, ${per_thread}, ${CMAKE_MATCH_5})\n")
    math(EXPR index "${index} + 1")
  endforeach()
  file(CONFIGURE OUTPUT "${output}" CONTENT "${text}" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${table}")
endfunction()
