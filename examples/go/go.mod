module example

go 1.24

require holdfast v0.0.0

replace holdfast => ../../clients/go
