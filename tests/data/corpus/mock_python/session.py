x = 3; y = (x * -2) + 4
y += x
print("a\n", y)
y