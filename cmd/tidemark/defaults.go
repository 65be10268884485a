package main

const defaultAddress = "127.0.0.1:9306"
