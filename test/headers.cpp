// No code: see weft_test_headers in CMakeLists.txt.
