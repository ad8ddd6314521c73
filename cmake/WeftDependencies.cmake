# Everything Weft builds against, found in one place. The packages that bring them are listed in deps/debian.txt.
find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)

# Header-only or without a CMake config of their own.
find_path(WEFT_FMT_INCLUDE fmt/format.h REQUIRED)  # its functions are compiled in src/base/fmt.cpp
add_library(weft_fmt INTERFACE)
target_include_directories(weft_fmt SYSTEM INTERFACE ${WEFT_FMT_INCLUDE})

find_path(WEFT_XXHASH_INCLUDE xxhash.h REQUIRED)
find_library(WEFT_XXHASH_LIBRARY xxhash REQUIRED)
add_library(weft_xxhash INTERFACE)
target_include_directories(weft_xxhash SYSTEM INTERFACE ${WEFT_XXHASH_INCLUDE})
target_link_libraries(weft_xxhash INTERFACE ${WEFT_XXHASH_LIBRARY})

find_path(WEFT_PROTOZERO_INCLUDE protozero/pbf_reader.hpp REQUIRED)
add_library(weft_protozero INTERFACE)
target_include_directories(weft_protozero SYSTEM INTERFACE ${WEFT_PROTOZERO_INCLUDE})

find_path(WEFT_OPENCL_INCLUDE CL/cl.h REQUIRED)  # headers only: the loader is opened at run time
add_library(weft_opencl INTERFACE)
target_include_directories(weft_opencl SYSTEM INTERFACE ${WEFT_OPENCL_INCLUDE})

find_package(LLVM 22.1 REQUIRED CONFIG)
separate_arguments(WEFT_LLVM_DEFINITIONS UNIX_COMMAND "${LLVM_DEFINITIONS}")
# Each is a third of the program's size; all of them are known to codegen/llvm/target.cpp.
set(WEFT_LLVM_CPUS X86 AArch64 RISCV NVPTX SPIRV CACHE STRING "processors to generate code for, by LLVM's names; this machine's is among them")
foreach(cpu IN LISTS WEFT_LLVM_CPUS)
  list(APPEND WEFT_LLVM_COMPONENTS ${cpu}CodeGen)
  list(APPEND WEFT_LLVM_DEFINITIONS -DWEFT_LLVM_${cpu})
endforeach()
add_library(weft_llvm INTERFACE)  # to link with; only codegen/llvm sees the headers
if(WEFT_SHARED_LLVM)
  target_link_libraries(weft_llvm INTERFACE LLVM)
else()
  llvm_map_components_to_libnames(WEFT_LLVM_LIBS ${WEFT_LLVM_COMPONENTS} orcjit passes)
  target_link_libraries(weft_llvm INTERFACE ${WEFT_LLVM_LIBS})
endif()

# The program's malloc where it is there: compiling makes and drops small pieces by the million.
add_library(weft_malloc INTERFACE)
find_package(mimalloc QUIET)
if(mimalloc_FOUND AND NOT WEFT_SANITIZE)
  target_link_libraries(weft_malloc INTERFACE mimalloc)
endif()

# ccache and lld when present: neither is required.
find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE)
  # Precompiled headers: https://ccache.dev/manual/latest.html#_precompiled_headers
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${WEFT_CCACHE})
endif()
find_program(WEFT_LLD ld.lld)
if(WEFT_LLD)
  add_link_options(-fuse-ld=lld)
endif()
add_link_options(-Wl,--gc-sections)
