package com.example.shop;

public enum Color {
    RED, GREEN, BLUE
}
