// No code: see weft_headers in WeftLibrary.cmake.
