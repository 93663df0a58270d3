# cmake -DINPUT=file -DOUTPUT=file.c -P embed.cmake: the bytes of a file as a C array.
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(................................................................................)"
       "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"box.h\"\n\nconst unsigned char driver_text[] = {\n${bytes}};\n"
     "const size_t driver_text_len = sizeof driver_text;\n")
