# cmake "-DINPUTS=file;file" -DOUTPUT=file.c -P embed.cmake: the bytes of files, one behind the other, as a C array.
set(hex "")
foreach(input IN LISTS INPUTS)
    file(READ ${input} part HEX)
    string(APPEND hex ${part})
endforeach()
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(................................................................................)"
       "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"box.h\"\n\nconst unsigned char driver_text[] = {\n${bytes}};\n"
     "const size_t driver_text_len = sizeof driver_text;\n")
