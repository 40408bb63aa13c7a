# SPDX-License-Identifier: Apache-2.0
# Unity builds: the sources of a folder are compiled together, some at a time, because most of the time of a file goes into
# its headers. Every source also compiles alone, with MANYSCALE_UNITY=OFF.

option(MANYSCALE_UNITY "Compile the sources of a folder together" ON)

# manyscale_unity(target ROOT folder MOST files SOURCES ... [ALONE regex] [TOGETHER regex] [PLUGINS])
# Sources of a folder below ROOT form groups of at most MOST files; folders of fewer than four files share a group. Sources
# that ALONE matches, because they give other meanings to the same local names, are compiled alone; those that TOGETHER
# matches form one group.
function(manyscale_unity target)
  cmake_parse_arguments(PARSE_ARGV 1 unity "PLUGINS" "ROOT;MOST;ALONE;TOGETHER" "SOURCES")
  if(NOT MANYSCALE_UNITY)
    return()
  endif()
  set(folders "")
  foreach(source ${unity_SOURCES})
    file(RELATIVE_PATH folder ${unity_ROOT} ${source})
    if(unity_ALONE AND folder MATCHES "${unity_ALONE}")
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      continue()
    endif()
    if(unity_TOGETHER AND folder MATCHES "${unity_TOGETHER}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP together)
      continue()
    endif()
    get_filename_component(folder "${folder}" DIRECTORY)
    list(APPEND folders "${folder}")
    list(APPEND "sources_${folder}" ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    list(LENGTH "sources_${folder}" count)
    if(count LESS 4)
      string(REGEX REPLACE "/.*" "" top "${folder}")
      set_source_files_properties(${sources_${folder}} PROPERTIES UNITY_GROUP small_${top})
      continue()
    endif()
    math(EXPR groups "(${count} + ${unity_MOST} - 1) / ${unity_MOST}")
    math(EXPR share "(${count} + ${groups} - 1) / ${groups}")
    set(index 0)
    foreach(source IN LISTS "sources_${folder}")
      math(EXPR group "${index} / ${share}")
      math(EXPR index "${index} + 1")
      string(MAKE_C_IDENTIFIER "${folder}_${group}" group)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP UNITY_BUILD_RELOCATABLE ON)
  if(unity_PLUGINS)  # each calls the object that registers it `registered`; in a group it gets a name of its own
    set_target_properties(${target} PROPERTIES UNITY_BUILD_UNIQUE_ID MANYSCALE_UNITY_ID
      UNITY_BUILD_CODE_BEFORE_INCLUDE "#undef registered\n#define registered MANYSCALE_UNITY_ID")
  endif()
endfunction()
