# What `cmake --install` puts where: the program, the library as one shared object with LLVM inside and hidden, the same
# as one static archive, the headers, and a package for find_package(weft).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(stages GLOBAL PROPERTY WEFT_STAGES)
list(REMOVE_ITEM stages weft_cli_lib)

# The public header's names, and those of base that it shows; weft.map decides what leaves the shared library.
set_target_properties(weft_base weft_api PROPERTIES CXX_VISIBILITY_PRESET default)

# All of base and api, whether the rest uses it or not.
add_library(weft_shared SHARED $<TARGET_OBJECTS:weft_base> $<TARGET_OBJECTS:weft_api>)
set_target_properties(weft_shared PROPERTIES OUTPUT_NAME weft EXPORT_NAME weft VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                      LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/weft.map)
set_target_properties(weft_shared PROPERTIES LINKER_LANGUAGE CXX)
target_link_libraries(weft_shared PRIVATE weft_api)
target_link_options(weft_shared PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/weft.map)

# LLVM stays a dependency of the static form: the package finds it.
set(objects)
foreach(stage IN LISTS stages)
  list(APPEND objects $<TARGET_OBJECTS:${stage}>)
endforeach()
add_library(weft_static STATIC ${objects})
set_target_properties(weft_static PROPERTIES OUTPUT_NAME weft)
if(WEFT_SHARED_LLVM)
  set(llvm LLVM)
else()
  set(llvm ${WEFT_LLVM_LIBS})
endif()
target_link_libraries(weft_static INTERFACE ${llvm} xxhash Threads::Threads ${CMAKE_DL_LIBS})

foreach(library weft_shared weft_static)
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/weft>)
  target_compile_features(${library} INTERFACE cxx_std_20)
endforeach()

install(TARGETS weft)
install(TARGETS weft_shared weft_static EXPORT weft)
install(FILES include/weft/weft.h include/weft/tile.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft)
foreach(header dim dtype error tensor)  # what weft.h includes
  install(FILES src/base/${header}.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft/base)
endforeach()
install(FILES src/base/dtypes.def DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft/base)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
install(EXPORT weft NAMESPACE weft:: DESTINATION ${package} FILE weftTargets.cmake)
configure_package_config_file(cmake/weftConfig.cmake.in weftConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/weftConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/weftConfigVersion.cmake
        DESTINATION ${package})
