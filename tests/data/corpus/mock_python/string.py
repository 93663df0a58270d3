s = 'it\''
s + s
