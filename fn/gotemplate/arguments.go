// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import "reflect"

// CheckArguments returns a template function that fails where check finds an error in one of its arguments, and is fn otherwise.
func CheckArguments(fn any, check func(any) error) any {
	each := func(args []any) error {
		for _, arg := range args {
			if err := check(arg); err != nil {
				return err
			}
		}
		return nil
	}
	switch fn := fn.(type) {
	case func(...any) (string, error):
		return func(args ...any) (string, error) {
			if err := each(args); err != nil {
				return "", err
			}
			return fn(args...)
		}
	case func(string, ...any) (string, error):
		return func(format string, args ...any) (string, error) {
			if err := each(args); err != nil {
				return "", err
			}
			return fn(format, args...)
		}
	case func(any) string:
		return func(arg any) (string, error) {
			if err := check(arg); err != nil {
				return "", err
			}
			return fn(arg), nil
		}
	}
	return wrapFunction(fn, func(args []reflect.Value, call func() any) (any, error) {
		for _, arg := range args {
			if !arg.IsValid() {
				continue
			}
			if err := check(arg.Interface()); err != nil {
				return nil, err
			}
		}
		return call(), nil
	})
}
